import OutboxCore

extension Dispatcher {
    /// Removes what was kept long enough: once in an interval, and every second while there is more. A task of its own:
    /// what is slow or fails here holds up no lease, no recovery and no other part of the upkeep.
    func applyRetention() async {
        var isBehind = false
        var isFailing = false
        while abortsAt == nil {
            let pause = isBehind ? .seconds(1) : settings.retentionInterval
            await retentionSignal.wait(until: .now + pause)
            guard abortsAt == nil else { return }
            do {
                isBehind = try await store.retain()
                isFailing = false
            } catch {
                isBehind = false
                // Its session is its own: nothing follows for the others, and an outage is theirs to tell of.
                if !isFailing && !storeIsDown { observer.storeFailed(error) }
                isFailing = true
            }
        }
    }
}
