import Testing

@testable import OutboxCore

/// How a position leaves its lease: one row per way out.
@Suite struct PositionExitTests {
    let scene = DispatchScene()

    func exit(_ dispatch: ClaimedDispatch, _ dispositions: [Disposition]) -> PositionProgress.Exit {
        var progress = PositionProgress(targets: dispositions.count)
        for disposition in dispositions { progress.account(disposition) }
        return progress.exit(position: 1, of: dispatch, claimedAt: DispatchScene.start)
    }

    func back(
        _ delay: Duration, attempt: Int16, cursor: PageCursor = .start, clears: Bool = true
    ) -> PositionProgress.Exit {
        .returned(QueueReturn(position: 1, delay: delay, attempt: attempt, cursor: cursor, clearsCrashes: clears))
    }

    func end(_ status: SettlementStatus, _ reason: SettlementReason, whole: Bool = false) -> PositionProgress.Exit {
        .ended(PositionEnd(position: 1, status: status, reason: reason, wholeNotification: whole))
    }

    @Test func allFinalIsDone() {
        #expect(exit(scene.row(targets: 0..<2), [.final, .final]) == .done)
    }

    @Test func nobodyToSendToIsAnEndOfItsOwn() {
        #expect(exit(scene.row(targets: 0..<0), []) == end(.dispatched, .noDevice))
    }

    @Test func nobodyLeftAfterAnEarlierClaimIsDone() {
        #expect(exit(scene.row(targets: 0..<0, prior: true), []) == .done)
    }

    @Test func aFailureFailsAndARetryBringsTheRowBackFirst() {
        #expect(exit(scene.row(targets: 0..<2), [.final, .failed(.rejected)]) == end(.failed, .rejected))
        #expect(
            exit(scene.row(targets: 0..<2), [.failed(.rejected), .retry(.seconds(30))])
                == back(.seconds(30), attempt: 1))
    }

    @Test func runningIntoTheDeadlineExpires() {
        #expect(exit(scene.row(targets: 0..<2), [.final, .expired(.seconds(30))]) == end(.expired, .expired))
    }

    @Test func heldTargetsGiveTheAttemptBack() {
        #expect(exit(scene.row(targets: 0..<1), [.hold(.seconds(60))]) == back(.seconds(60), attempt: 0))
        #expect(
            exit(scene.row(targets: 0..<2), [.hold(.seconds(60)), .retry(.seconds(90))])
                == back(.seconds(60), attempt: 1))
    }

    @Test func releasedTargetsKeepPageAndCrashes() {
        for cursor in [PageCursor(behind: 500), PageCursor(behind: 500, isSecondLook: true)] {
            let paged = scene.row(targets: 0..<1, prior: true, cursor: cursor)
            #expect(exit(paged, [.release(.zero)]) == back(.zero, attempt: 0, cursor: cursor, clears: false))
        }
    }

    @Test func fullPagesGoOnBehindTheirLastDevice() {
        #expect(
            exit(scene.row(targets: 0..<1, pageEnd: 77), [.final])
                == back(.zero, attempt: 0, cursor: PageCursor(behind: 77)))
        #expect(
            exit(scene.row(targets: 0..<0, prior: true, pageEnd: 77), [])
                == back(.zero, attempt: 0, cursor: PageCursor(behind: 77)),
            "nobody on this page, but perhaps on the next")
    }

    @Test func afterTheLastPageComesASecondLook() {
        let last = scene.row(targets: 0..<1, prior: true, cursor: PageCursor(behind: 500))
        #expect(exit(last, [.final]) == back(.zero, attempt: 0, cursor: .startAgain))
    }

    @Test func theSecondLookEndsTheRow() {
        let looking = PageCursor(behind: 500, isSecondLook: true)
        let nobody = scene.row(targets: 0..<0, prior: true, cursor: looking, pageEnd: 600)
        #expect(
            exit(nobody, []) == back(.zero, attempt: 0, cursor: PageCursor(behind: 600, isSecondLook: true)))
        let somebody = scene.row(targets: 0..<1, prior: true, cursor: looking, pageEnd: 600)
        #expect(
            exit(somebody, [.retry(.seconds(1))])
                == back(.zero, attempt: 1, cursor: PageCursor(behind: 600, isSecondLook: true)))
        #expect(exit(scene.row(targets: 0..<0, prior: true, cursor: looking), []) == .done)
        let held = DispatchScene.start + .seconds(45)
        #expect(
            exit(scene.row(targets: 0..<0, prior: true, cursor: looking, heldUntil: held), [])
                == back(.seconds(45), attempt: 0, cursor: .startAgain, clears: false))
    }

    @Test func noPageWaitsForTheRetriesOfAnother() {
        let cursor = PageCursor(behind: 50)
        let middle = scene.row(targets: 0..<2, prior: true, cursor: cursor, pageEnd: 77)
        let last = scene.row(targets: 0..<2, prior: true, cursor: cursor)
        for later in [Disposition.retry(.seconds(30)), .hold(.seconds(2400)), .expired(.seconds(90))] {
            let spent: Int16 = later == .retry(.seconds(30)) ? 1 : 0
            #expect(
                exit(middle, [.final, later]) == back(.zero, attempt: spent, cursor: PageCursor(behind: 77)))
            #expect(
                exit(last, [later, .final]) == back(.zero, attempt: spent, cursor: .startAgain),
                "what was due meanwhile comes first")
        }
        #expect(
            exit(middle, [.retry(.seconds(30)), .release(.seconds(4))])
                == back(.seconds(4), attempt: 1, cursor: cursor, clears: false))
    }

    @Test func howeverManyPagesHaveRetriesTheAttemptStaysANumber() {
        let row = scene.row(
            targets: 0..<1, prior: true, cursor: PageCursor(behind: 50), pageEnd: 77, attempt: .max)
        #expect(exit(row, [.retry(.zero)]) == back(.zero, attempt: .max - 1, cursor: PageCursor(behind: 77)))
    }

    @Test func targetsWhoseRetryIsAheadKeepTheRowAlive() {
        let held = DispatchScene.start + .seconds(45)
        #expect(
            exit(scene.row(targets: 0..<1, prior: true, heldUntil: held), [.final])
                == back(.seconds(45), attempt: 0, clears: false))
        #expect(
            exit(scene.row(targets: 0..<1, prior: true, heldUntil: held), [.failed(.ceiling)])
                == back(.seconds(45), attempt: 0, clears: false))
        #expect(
            exit(scene.row(targets: 0..<1, prior: true, heldUntil: held), [.retry(.seconds(600))])
                == back(.seconds(45), attempt: 1))
    }

    @Test func whatIsClosedAlreadyIsNotClosedTwice() {
        #expect(exit(scene.row(targets: 0..<0, verdict: .closed), []) == .done)
    }

    @Test func theClaimSaysWhyARowReachesNobody() {
        let muted = scene.row(targets: 0..<0, prior: true, nobody: .muted)
        #expect(exit(muted, []) == end(.dispatched, .muted))
    }

    @Test(arguments: [
        (ClaimVerdict.superseded, SettlementStatus.superseded, SettlementReason.superseded, true),
        (.seen, .superseded, .seen, true),
        (.erased, .cancelled, .erased, true),
        (.expired, .expired, .expired, false),
        (.orphan, .cancelled, .erased, true),
    ])
    func verdictsEndTheRowWithoutASend(
        verdict: ClaimVerdict, status: SettlementStatus, reason: SettlementReason, whole: Bool
    ) {
        #expect(exit(scene.row(targets: 0..<0, verdict: verdict), []) == end(status, reason, whole: whole))
    }
}
