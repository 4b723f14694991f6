import OutboxCore

extension Dispatcher {
    /// An operator replaced credentials, or says that what was refused is right now: reads them again and tries what
    /// is paused at once. One that cannot be used changes nothing.
    package func reloadCredentials() {
        for (index, lane) in lanes.enumerated() {
            guard let isAnother = lane.reloadCredential(wallClock: wallClock()) else { continue }
            state.credentialWasRead(lane: index, isAnother: isAnother, now: .now)
            lanesToRetry.insert(index)
            observer.credentialRead(configurations[index].description.name, isAnother: isAnother)
            // Apple binds a connection to the key of its first request.
            if isAnother { lane.reconnect() }
        }
        claimSignal.ring()
        upkeepSignal.ring()
    }

    /// Most rows that one statement makes due.
    private static let retriedAtOnce = 10_000

    /// Makes what waits for a pause to end due at once, on lanes that somebody has looked after: by SIGHUP, or by the
    /// start of this worker. Repeated with the next turn of the upkeep when the connection failed. What the database
    /// ends is not, as when more rows wait than it can look through in its time: they wait for their pause to end.
    func retryHeld() async {
        let lanes = lanesToRetry
        let routes = lanes.flatMap { state.lanes[$0].routes }
        guard !routes.isEmpty else { return }
        // Taken now: who asks while the statement runs may have mended what it did not see.
        lanesToRetry = []
        await attempt { () async throws(StoreError) in
            var isOver = true
            defer { if !isOver { self.lanesToRetry.formUnion(lanes) } }
            do throws(StoreError) {
                let moved = try await self.store.retryHeld(on: routes, limit: Self.retriedAtOnce)
                guard moved > 0 else { return }
                isOver = moved < Self.retriedAtOnce
                if !isOver { self.upkeepSignal.ring() }
                self.state.recovered()
                self.claimSignal.ring()
            } catch {
                isOver = error.kind != .connection
                throw error
            }
        }
    }
}
