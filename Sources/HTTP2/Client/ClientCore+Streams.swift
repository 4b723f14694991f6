import CNGHTTP2
import EventLoop

/// What became of streams, and what the clock says about them.
extension ClientCore {
    /// A stream of `connection` is closed and its request had no result.
    func streamEnded(
        _ ended: HTTP2Session.EndedStream, on connection: HTTP2Connection, at now: ContinuousClock.Instant
    ) {
        let slot = ended.slot
        if slot.pointee.isComplete, slot.pointee.status >= 200 {
            judge(slot.pointee.status, on: connection)
            return answer(slot, at: now)
        }
        let isBehindGoAway = connection.session.goAway.map { slot.pointee.streamID > $0.lastStreamID } ?? false
        // A peer that answers has looked at the request, whatever it says of it afterwards.
        let isUntouched = !slot.pointee.answerHasBegun
        if isBehindGoAway {
            guard isUntouched else { return end(slot, .unanswered(.goneAway), at: now) }
            return repeatUnsent(slot, .goneAway, at: now)
        }
        if ended.code == NGHTTP2_REFUSED_STREAM.rawValue, slot.pointee.isResetByPeer, isUntouched {
            statistics.refused += 1
            return repeatUnsent(slot, .refusedStream, at: now)
        }
        if slot.pointee.isResetByPeer { statistics.resets += 1 }
        // A stream that nghttp2 has reset itself carried an answer that breaks HTTP/2.
        end(slot, .unanswered(slot.pointee.isResetByPeer ? .reset : .malformedAnswer), at: now)
    }

    /// The peer has not looked at the request: another try at once, or `notSent` when it has had its tries.
    private func repeatUnsent(_ slot: RequestPointer, _ reason: HTTPFaultReason, at now: ContinuousClock.Instant) {
        if isClosing {
            end(slot, .notSent(.closed), at: now)
        } else if Int(slot.pointee.tries) >= configuration.triesMax {
            end(slot, .notSent(reason), at: now)
        } else {
            table.putBack(slot)
        }
    }

    /// Learns from an answer how the connection does.
    private func judge(_ status: Int, on connection: HTTP2Connection) {
        connection.timeoutsInRow = 0
        if status == 500 {
            connection.serverErrorsInRow += 1
            if connection.serverErrorsInRow >= configuration.serverErrorsMax {
                let reason = "\(connection.serverErrorsInRow) answers in a row were 500"
                connection.retire(HTTP2ConnectionError(.serverErrors, peer: connection.peer, reason: reason))
            }
        } else {
            connection.serverErrorsInRow = 0
        }
        if status < 500 {
            connection.goodAnswers += 1
            failuresInRow = 0
        }
    }

    /// Everything that is due. Arms the timer for what is due next.
    func tick(at now: ContinuousClock.Instant) {
        expire(at: now)
        let watched = connections
        for connection in watched { look(after: connection, at: now) }
        connectIfNeeded(at: now)
        openAnotherIfCrowded(at: now)
        finishClosing(at: now)
        // Never in the past: a timer that fires at once, again and again, would keep the loop from everything else.
        if let due = nextDue(at: now) { arm(at: max(due, now + .milliseconds(1))) }
    }

    /// Requests that have waited too long are not sent any more, also when nobody came to look in time: of a process
    /// that was paused, and of what it was given before, the caller's right to send may have run out. Those in front
    /// are looked at; what is behind them is when its turn comes.
    func endOverdue(at now: ContinuousClock.Instant) {
        while let slot = table.waiting.first {
            if slot.pointee.submittedAt + configuration.queueTimeout <= now {
                statistics.timeouts += 1
                end(slot, .notSent(.timeout), at: now)
            } else if slot.pointee.isOverdue(at: now) {
                end(slot, .notSent(.overdue), at: now)
            } else {
                return
            }
        }
    }

    private func expire(at now: ContinuousClock.Instant) {
        endOverdue(at: now)
        while let slot = table.all.first, slot.pointee.submittedAt + configuration.requestTimeout <= now {
            statistics.timeouts += 1
            guard slot.pointee.phase == .sent else {
                end(slot, .notSent(.timeout), at: now)
                continue
            }
            if let connection = connection(slot.pointee.connection) {
                connection.session.cancel(slot)
                timedOut(connection)
            }
            end(slot, .unanswered(.timeout), at: now)
        }
    }

    private func timedOut(_ connection: HTTP2Connection) {
        connection.timeoutsInRow += 1
        guard connection.timeoutsInRow >= configuration.timeoutsMax else { return }
        let reason = "\(connection.timeoutsInRow) requests in a row had no answer"
        connection.retire(HTTP2ConnectionError(.timeouts, peer: connection.peer, reason: reason))
    }

    private func connection(_ number: Int) -> HTTP2Connection? {
        connections.first { $0.number == number }
    }

    private func nextDue(at now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        var due = table.all.first.map { $0.pointee.submittedAt + configuration.requestTimeout }
        func consider(_ instant: ContinuousClock.Instant?) {
            guard let instant else { return }
            due = due.map { min($0, instant) } ?? instant
        }
        consider(table.waiting.first.map { $0.pointee.submittedAt + configuration.queueTimeout })
        for connection in connections { consider(nextLook(after: connection)) }
        consider(retryAt)
        consider(crowdedSince.map { $0 + configuration.busyBeforeAnother })
        consider(closeDeadline)
        return due
    }
}
