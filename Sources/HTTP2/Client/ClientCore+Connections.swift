package import EventLoop

/// Which connections there are: made when needed, looked after, replaced with patience.
extension ClientCore {
    // MARK: Making

    /// Makes a connection when requests wait and none is open or on its way, or when the pause after a failure is over.
    func connectIfNeeded(at now: ContinuousClock.Instant) {
        if isClosing { return }
        let isServed = connections.contains { $0.state == .open || $0.state.isBeingMade }
        if let retryAt {
            guard retryAt <= now else { return }
            self.retryAt = nil
        } else if table.waiting.count == 0 {
            return
        }
        // Draining connections count too, so that a peer which always goes away cannot gather them.
        if !isServed, connections.count < configuration.connectionsMax * 2 { connect(at: now) }
    }

    /// Makes one more connection.
    package func connect(at now: ContinuousClock.Instant) {
        retryAt = nil
        connectionsMade += 1
        let connection = HTTP2Connection(number: connectionsMade, client: self, at: now)
        connections.append(connection)
        arm(at: connection.connectDeadline)
        resolve?(connection.number)
    }

    /// Hands a connection the addresses it has asked for.
    package func resolved(_ number: Int, _ result: Result<[SocketAddress], HTTP2ConnectionError>) {
        connections.first { $0.number == number }?.resolved(result)
        wantTurn()
    }

    /// The peer's first SETTINGS has come.
    func opened(_ connection: HTTP2Connection) {
        statistics.connectionsOpened += 1
        if let due = nextLook(after: connection) { arm(at: due) }
    }

    /// Notes how long all streams have been taken while requests wait.
    func noteCrowding(at now: ContinuousClock.Instant) {
        let isCrowded =
            table.waiting.count > 0 && inFlight < configuration.concurrency
            && connections.count < configuration.connectionsMax && retryAt == nil
            && connections.contains { $0.state == .open }
            && connections.allSatisfy { $0.state != .open || ($0.isFull && $0.session.streamLimit > 1) }
            && !connections.contains { $0.state.isBeingMade }
        if !isCrowded {
            crowdedSince = nil
        } else if crowdedSince == nil {
            crowdedSince = now
            arm(at: now + configuration.busyBeforeAnother)
        }
    }

    /// Notes which connections take no request although none is under way there. A PING finds out whether their peers
    /// still are there: what one that has vanished does not allow it would not allow for ever.
    func noteHeldBack(at now: ContinuousClock.Instant) {
        guard table.waiting.count > 0, inFlight < configuration.concurrency else { return }
        for connection in connections
        where connection.state == .open && connection.session.openStreams == 0 && connection.heldBackSince == nil {
            connection.heldBackSince = now
            arm(at: now + configuration.pingAfter)
        }
    }

    func openAnotherIfCrowded(at now: ContinuousClock.Instant) {
        guard let since = crowdedSince, now - since >= configuration.busyBeforeAnother else { return }
        crowdedSince = nil
        connect(at: now)
    }

    // MARK: Ending

    /// A connection takes no more requests and closes when those it has are done.
    func draining(_ connection: HTTP2Connection, _ error: HTTP2ConnectionError) {
        leavesService(connection, error, wasOpen: true, at: environment.now)
    }

    /// A connection is closed. Requests that were handed to it have no answer, and none will come.
    func closed(_ connection: HTTP2Connection, _ error: HTTP2ConnectionError, wasOpen: Bool) {
        let now = environment.now
        connections.removeAll { $0 === connection }
        if !wasOpen { statistics.connectionsFailed += 1 }
        endRequests(of: connection, at: now)
        if connection.retirement == nil { leavesService(connection, error, wasOpen: wasOpen, at: now) }
        wantTurn()
    }

    /// One connection less to send on: decides when there may be another, and tells what that means.
    private func leavesService(
        _ connection: HTTP2Connection, _ error: HTTP2ConnectionError, wasOpen: Bool, at now: ContinuousClock.Instant
    ) {
        guard !isClosing else { return }
        let isServed = connections.contains { $0.state == .open || $0.state.isBeingMade }
        if !isServed { toldStreams = nil }
        if let delay = delayAfter(connection, error, wasOpen: wasOpen) {
            retryAt = max(retryAt ?? now, now + delay)
        }
        if !isServed, let retryAt, retryAt > now {
            tell(.down(error, retryAt: retryAt))
            endWaiting(.noConnection, at: now)
            arm(at: retryAt)
        } else if wasOpen, error.code != .retired {
            tell(.replacing(error))
        }
    }

    private func endRequests(of connection: HTTP2Connection, at now: ContinuousClock.Instant) {
        var next = table.all.first
        while let slot = next {
            next = table.all.next(slot)
            if slot.pointee.phase == .sent, slot.pointee.connection == connection.number {
                end(slot, .unanswered(.connectionLost), at: now)
            }
        }
    }

    /// How long to wait before another connection is made; nil for not at all.
    ///
    /// A connection that has served is replaced at once. One that opened and brought nothing is forgiven once; from
    /// then on, and after any that could not be made or was given up, the wait doubles from the first to the longest,
    /// less up to a quarter by chance, so that many workers do not come back together. (Worked values: 1 s, 2 s, 4 s …
    /// 60 s.)
    private func delayAfter(
        _ connection: HTTP2Connection, _ error: HTTP2ConnectionError, wasOpen: Bool
    ) -> Duration? {
        let wasEvicted = error.code == .timeouts || error.code == .serverErrors
        if error.code == .retired { return nil }
        if wasOpen, !wasEvicted, connection.goodAnswers > 0 { return nil }
        failuresInRow += 1
        let step = wasOpen && !wasEvicted ? failuresInRow - 2 : failuresInRow - 1
        guard step >= 0 else { return nil }
        let delay = min(configuration.backoffFirst * (1 << min(step, 16)), configuration.backoffMax)
        return delay * environment.draw(75...100) / 100
    }

    /// Replaces every open connection: none takes another request, and each closes when it has answered what it has.
    package func retireAll(_ reason: String) {
        for connection in connections where connection.state == .open {
            connection.retire(HTTP2ConnectionError(.retired, peer: connection.peer, reason: reason))
        }
        wantTurn()
    }

    // MARK: Looking after

    /// Whatever is due for one connection.
    func look(after connection: HTTP2Connection, at now: ContinuousClock.Instant) {
        if connection.state.isBeingMade {
            if now >= connection.connectDeadline {
                let reason = "not open after \(configuration.connectTimeout): \(connection.progress)"
                connection.close(HTTP2ConnectionError(.connectTimeout, peer: connection.peer, reason: reason))
            }
            return
        }
        if let deadline = connection.drainDeadline, now >= deadline, let retirement = connection.retirement {
            return connection.close(retirement)
        }
        if let sent = connection.pingSentAt {
            guard now - sent >= configuration.pingTimeout else { return }
            let reason = "no frame for \(configuration.pingTimeout) after a PING"
            return connection.close(HTTP2ConnectionError(.silent, peer: connection.peer, reason: reason))
        }
        if now >= pingDue(connection) {
            statistics.pings += 1
            connection.pingSentAt = now
            connection.session.sendPing()
        }
        retireIfIdleOrOld(connection, at: now)
    }

    private func retireIfIdleOrOld(_ connection: HTTP2Connection, at now: ContinuousClock.Instant) {
        guard connection.state == .open else { return }
        if now >= connection.endOfLife {
            connection.retire(HTTP2ConnectionError(.retired, peer: connection.peer, reason: "old"))
        } else if connection !== connections.first, now >= idleDue(connection) {
            connection.retire(HTTP2ConnectionError(.retired, peer: connection.peer, reason: "idle"))
        }
    }

    /// When something has to be done for `connection`, if nothing happens.
    func nextLook(after connection: HTTP2Connection) -> ContinuousClock.Instant? {
        if connection.state.isBeingMade { return connection.connectDeadline }
        let sign = connection.pingSentAt.map { $0 + configuration.pingTimeout } ?? pingDue(connection)
        if let deadline = connection.drainDeadline { return min(sign, deadline) }
        guard connection.pingSentAt == nil else { return sign }
        let due = min(sign, connection.endOfLife)
        return connection === connections.first ? due : min(due, idleDue(connection))
    }

    private func pingDue(_ connection: HTTP2Connection) -> ContinuousClock.Instant {
        if connection.session.openStreams > 0 {
            return max(connection.lastReadAt, connection.busySince) + configuration.pingAfter
        }
        if let heldBackSince = connection.heldBackSince {
            return max(connection.lastReadAt, heldBackSince) + configuration.pingAfter
        }
        return connection.lastReadAt + configuration.idlePingInterval
    }

    private func idleDue(_ connection: HTTP2Connection) -> ContinuousClock.Instant {
        guard connection.session.openStreams == 0 else { return connection.endOfLife }
        return max(connection.lastRequestAt, connection.openedAt) + configuration.idleTimeout
    }

    // MARK: Closing

    /// Ends a close in progress once nothing is in flight, or its time is over.
    func finishClosing(at now: ContinuousClock.Instant) {
        guard let closeDeadline, isClosing else { return }
        guard inFlight == 0 || now >= closeDeadline else { return }
        let open = connections
        for connection in open {
            connection.close(HTTP2ConnectionError(.retired, peer: connection.peer, reason: "the client is closed"))
        }
        guard table.all.count == 0 else { return }
        self.closeDeadline = nil
        resolve = nil
        for waiter in closeWaiters { waiter.resume() }
        closeWaiters = []
    }
}
