/// How far one position of a lease has come: which of its targets are still to be accounted for, and what those that
/// were say about the position's way out.
struct PositionProgress: Equatable, Sendable {
    /// Targets without a disposition.
    private(set) var remaining: Int
    private var spentAttempt = false
    private var wasReleased = false
    private var earliestReturn: Duration?
    private var failure: SettlementReason?
    private var hasExpired = false
    private var ending: Ending?

    /// How a position ends by a settlement.
    struct Ending: Equatable, Sendable {
        let status: SettlementStatus
        let reason: SettlementReason
    }

    init(targets: Int) {
        remaining = targets
    }

    /// One more target is accounted for.
    mutating func account(_ disposition: Disposition) {
        precondition(remaining > 0, "a position has more dispositions than targets")
        remaining -= 1
        switch disposition {
        case .final: break
        case .failed(let reason): failure = failure ?? reason
        case .expired: hasExpired = true
        case .retry(let wait):
            spentAttempt = true
            returnAfter(wait)
        case .hold(let wait):
            returnAfter(wait)
        case .release(let wait):
            wasReleased = true
            returnAfter(wait)
        }
    }

    /// A target fell out because the whole notification is over; the position ends by it unless something goes back.
    mutating func accountEnd(_ status: SettlementStatus, _ reason: SettlementReason) {
        precondition(remaining > 0, "a position has more dispositions than targets")
        remaining -= 1
        ending = Ending(status: status, reason: reason)
    }

    private mutating func returnAfter(_ wait: Duration) {
        earliestReturn = min(earliestReturn ?? wait, wait)
    }

    /// How the position leaves the lease.
    enum Exit: Equatable {
        /// All its targets are final on the ledger.
        case done
        case returned(QueueReturn)
        case ended(PositionEnd)
    }

    /// The way out of a position whose targets are all accounted for.
    func exit(position: Int16, of dispatch: ClaimedDispatch, claimedAt: Timestamp) -> Exit {
        precondition(remaining == 0, "a position leaves when all its targets are accounted for")
        // It has its end already, and a second one would only repeat it.
        if dispatch.verdict == .closed { return .done }
        if let ending = ending ?? verdictEnding(of: dispatch) { return ended(position, ending) }
        func goesBack(after delay: Duration, spent: Bool, cursor: PageCursor, clears: Bool) -> Exit {
            // A number for the ledger; each page with a retry takes one, and however many they are it stays a number.
            let attempt = min(spent ? dispatch.attempt : dispatch.attempt - 1, .max - 1)
            return .returned(
                QueueReturn(
                    position: position, delay: delay, attempt: attempt, cursor: cursor, clearsCrashes: clears))
        }
        if let cursor = nextPage(of: dispatch), !wasReleased {
            return goesBack(after: .zero, spent: spentAttempt, cursor: cursor, clears: true)
        }
        let held = dispatch.heldUntil.map { max(.zero, $0 - claimedAt) }
        if let wait = earliestReturn {
            // Released rows keep their place in the pages: those targets were not tried.
            let cursor = wasReleased ? dispatch.cursor : beginning(of: dispatch)
            return goesBack(after: min(wait, held ?? wait), spent: spentAttempt, cursor: cursor, clears: !wasReleased)
        }
        if let held { return goesBack(after: held, spent: false, cursor: beginning(of: dispatch), clears: false) }
        return lastExit(position: position, dispatch: dispatch)
    }

    /// Where the next claim goes on at once: behind the page, and behind the last one at the start, once more, for
    /// whoever is not final; nil for a row without pages, and when the second look is over. Targets that are tried
    /// again are left out of claims until then, so nobody waits for them. Those that were released are not, so their
    /// page is claimed again instead.
    private func nextPage(of dispatch: ClaimedDispatch) -> PageCursor? {
        if let end = dispatch.pageEnd { return PageCursor(behind: end, isSecondLook: dispatch.cursor.isSecondLook) }
        return dispatch.cursor.isSecondLook || dispatch.cursor == .start ? nil : .startAgain
    }

    /// Where a row goes on whose targets wait: one with pages looks only for these.
    private func beginning(of dispatch: ClaimedDispatch) -> PageCursor {
        dispatch.cursor == .start ? .start : .startAgain
    }

    private func lastExit(position: Int16, dispatch: ClaimedDispatch) -> Exit {
        if let failure { return ended(position, Ending(status: .failed, reason: failure)) }
        if hasExpired { return ended(position, Ending(status: .expired, reason: .expired)) }
        if dispatch.targets.isEmpty, let reason = dispatch.nobody ?? (dispatch.prior ? nil : .noDevice) {
            return ended(position, Ending(status: .dispatched, reason: reason))
        }
        return .done
    }

    private func ended(_ position: Int16, _ ending: Ending) -> Exit {
        let whole = ending.status == .superseded || ending.status == .cancelled
        return .ended(
            PositionEnd(
                position: position, status: ending.status, reason: ending.reason, wholeNotification: whole))
    }

    private func verdictEnding(of dispatch: ClaimedDispatch) -> Ending? {
        switch dispatch.verdict {
        case .send, .closed: nil
        case .superseded: Ending(status: .superseded, reason: .superseded)
        case .seen: Ending(status: .superseded, reason: .seen)
        case .erased: Ending(status: .cancelled, reason: .erased)
        case .expired: Ending(status: .expired, reason: .expired)
        case .orphan: Ending(status: .cancelled, reason: .erased)
        }
    }
}
