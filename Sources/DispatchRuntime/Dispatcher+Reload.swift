import OutboxCore

extension Dispatcher {
    /// An operator replaced credentials, or says that what was refused is right now: reads them again and tries what
    /// is paused at once. One that cannot be used changes nothing.
    package func reloadCredentials() {
        for (index, lane) in lanes.enumerated() {
            guard let isAnother = lane.reloadCredential(wallClock: wallClock()) else { continue }
            state.credentialWasRead(lane: index, isAnother: isAnother, now: .now)
            observer.credentialRead(configurations[index].description.name, isAnother: isAnother)
            // Apple binds a connection to the key of its first request.
            if isAnother { lane.reconnect() }
        }
        claimSignal.ring()
    }
}
