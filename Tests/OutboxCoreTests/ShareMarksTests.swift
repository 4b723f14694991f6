import OutboxCore
import Testing

/// How far each share was read, and when it is read from its beginning.
@Suite struct ShareMarksTests {
    private static let origin = ContinuousClock.now
    private static let share = Share(urgency: 0, tenant: 1)
    private static let last = LowWaterMark(dueAt: DispatchScene.start, notification: Identifier(high: 1, low: 1))
    private var marks = ShareMarks()

    private func mark(_ milliseconds: Int) -> LowWaterMark {
        marks.mark(
            route: 1, crashClass: .clean, share: Self.share, at: Self.origin + .milliseconds(milliseconds))
    }

    private mutating func claim(from mark: LowWaterMark, to last: LowWaterMark? = last, cost: Double) {
        var random = SplitMix(seed: 1)
        let request = ClaimRequest(
            batch: .random(using: &random), route: 1, crashClass: .clean,
            credits: [ShareCredit(share: Self.share, rows: 10, mark: mark)], lease: .seconds(30), targetsPerRow: 1)
        marks.claimed(
            request, last: last.map { [Self.share: $0] } ?? [:], cost: .milliseconds(1) * cost, at: Self.origin)
    }

    @Test mutating func marksFollowTheClaimAndFullScansAreRationedByTheirCost() {
        #expect(mark(0) == .start)
        claim(from: .start, cost: 400)
        #expect(mark(6) == .start, "one that was slow once, or the first, says nothing of the next")
        claim(from: .start, cost: 10)
        #expect(mark(199) == Self.last)
        #expect(mark(201) == .start, "twenty times the cost of the last full scan has passed")
        let next = LowWaterMark(dueAt: DispatchScene.start + .seconds(1), notification: Identifier(high: 2, low: 1))
        claim(from: Self.last, to: next, cost: 1)
        #expect(mark(199) == next)
        for _ in 1...2 { claim(from: .start, to: nil, cost: 60_000) }
        #expect(mark(9_999) == .start && mark(10_001) == .start, "a full scan that found nothing leaves no mark")
        marks.reset()
        #expect(mark(0) == .start)
    }

    /// What was committed behind the mark of a busy share waits for a claim, not for twenty of them.
    @Test mutating func aFullScanThatCostsNoMoreThanAClaimIsAllowedAfterTheNext() {
        for _ in 1...2 { claim(from: .start, cost: 5) }
        #expect(mark(1) == Self.last, "two full scans do not follow one another at once")
        claim(from: Self.last, cost: 5)
        #expect(mark(1) == .start)
    }

    /// Of 9 ms beside claims of 5 ms it takes 4 ms more, and of 100 ms 95 ms.
    @Test(arguments: [(cost: 9.0, claims: 4), (100, 76)])
    mutating func oneThatCostsMoreAddsAQuarterAtMost(cost: Double, claims: Int) {
        for _ in 1...2 { claim(from: .start, cost: cost) }
        for _ in 1..<claims {
            claim(from: Self.last, cost: 5)
            #expect(mark(1) == Self.last)
        }
        claim(from: Self.last, cost: 5)
        #expect(mark(1) == .start)
    }
}
