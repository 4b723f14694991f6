package import EventLoop

/// Sends requests to one authority with one credential, over as many connections as it takes.
///
/// Everything happens on the loop: the runtime enters with `assumeIsolated`. Each submitted request gets exactly one
/// result. A client that has been used has to be closed; until then it keeps itself alive.
package actor HTTP2Client {
    private let loop: EventLoop
    private let core: ClientCore
    private let lookUp: AddressLookUp

    /// Finds the addresses of a host for a port, without blocking the loop.
    package typealias AddressLookUp =
        @Sendable (_ host: String, _ port: UInt16, _ loop: EventLoop) async throws -> [SocketAddress]

    /// A client that connects when the first request is submitted.
    ///
    /// `answered` is called on the loop, at most once a turn, with everything that ended in it; the bytes are gone when
    /// it returns, unless it takes the batch. It may submit more from within. `stateChanged` is called on the loop too.
    /// `lookUp` is asked for each connection: for the host, or for the proxy, which then looks up the host itself.
    package init(
        _ configuration: HTTP2ClientConfiguration, on loop: EventLoop,
        lookUp: @escaping AddressLookUp = { try await Resolver.addresses(of: $0, port: $1, on: $2) },
        answered: @escaping @Sendable (inout HTTPResultBatch) -> Void,
        stateChanged: @escaping @Sendable (HTTP2ClientState) -> Void
    ) {
        self.loop = loop
        self.lookUp = lookUp
        core = ClientCore(
            configuration, in: LoopEnvironment(configuration, on: loop), answered: answered, stateChanged: stateChanged)
    }

    package nonisolated var unownedExecutor: UnownedSerialExecutor {
        loop.asUnownedSerialExecutor()
    }

    /// Queues `batch`; its requests are sent at the end of this turn, as far as the peer allows.
    ///
    /// What does not fit (see `capacity`) is given back as `notSent`.
    package func submit(_ batch: consuming HTTPRequestBatch) {
        beginUse()
        core.submit(batch)
    }

    /// Connects before there is a request, unless a connection is open or on its way.
    package func connect() {
        beginUse()
        if core.connections.isEmpty { core.connect(at: .now) }
    }

    /// How many more requests may be submitted now: the streams the peer allows and, while one more connection may be
    /// made, a bounded queue, less those that have no result yet. 0 while there is no connection and none may be tried.
    package var capacity: Int { core.capacity(at: .now) }

    /// Gives everything back that waits for a stream, as `notSent(.closed)`. What is in flight goes on.
    package func cancelQueued() {
        core.endWaiting(.closed, at: .now)
    }

    /// Opens a new connection for what is sent from now on; those in use finish what they have and close. For peers
    /// that bind a connection to the credential it first saw.
    package func replaceConnections() {
        core.retireAll("its credential was replaced")
    }

    /// Refuses new requests, waits at most `limit` for those in flight, and closes all connections; what is still
    /// without an answer then ends as `unanswered(.connectionLost)`.
    package func close(within limit: Duration) async {
        await withUnsafeContinuation { continuation in
            // In here, because the task may be queued anew before it comes to this point.
            core.closeWaiters.append(continuation)
            core.beginClosing(by: .now + limit)
        }
    }

    /// Counts, and where the client stands.
    package var statistics: HTTP2Statistics { core.currentStatistics }

    private func beginUse() {
        if core.resolve == nil, !core.isClosing { core.resolve = resolution }
    }

    /// Asks the resolver, which works off the loop, and comes back to the loop with the answer.
    private var resolution: (Int) -> Void {
        let proxy = core.configuration.proxy
        let host = proxy?.host ?? core.configuration.host
        let port = proxy?.port ?? core.configuration.port
        return { [loop] number in
            Task(executorPreference: loop) { await self.resolve(host, port, for: number) }
        }
    }

    private func resolve(_ host: String, _ port: UInt16, for number: Int) async {
        do {
            core.resolved(number, .success(try await lookUp(host, port, loop)))
        } catch {
            let reason = (error as? ResolverError)?.reason ?? "\(error)"
            let failure = HTTP2ConnectionError(
                .nameResolution, peer: core.configuration.peer, reason: "\(host): \(reason)")
            core.resolved(number, .failure(failure))
        }
    }
}
