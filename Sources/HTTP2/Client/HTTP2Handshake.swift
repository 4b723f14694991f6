package import EventLoop

/// What a connection that was made only to see whether it can be made came to.
package struct HTTP2Handshake: Sendable, Equatable {
    /// Name resolution, TCP, TLS and the peer's first SETTINGS together.
    package let duration: Duration
    /// Streams that the peer allows before it has seen a request.
    package let streams: Int

    /// Connects as a client of `configuration` would, waits for the peer's SETTINGS, and closes again. No request is
    /// sent. Throws why it cannot, after the configuration's `connectTimeout` at the latest.
    package static func attempt(
        _ configuration: HTTP2ClientConfiguration, on loop: EventLoop
    ) async throws(HTTP2ConnectionError) -> HTTP2Handshake {
        let startedAt = ContinuousClock.now
        let news = FirstNews(on: loop)
        let client = HTTP2Client(configuration, on: loop) { _ in
        } stateChanged: { state in
            news.tell(state)
        }
        await client.connect()
        let state = await news.first()
        let duration = startedAt.duration(to: .now)
        await client.close(within: .zero)
        switch state {
        case .up(let streams): return HTTP2Handshake(duration: duration, streams: streams)
        case .down(let error, _), .replacing(let error): throw error
        }
    }
}

/// The first thing that a client tells. Confined to the loop.
private actor FirstNews {
    private nonisolated let loop: EventLoop
    private var state: HTTP2ClientState?
    private var waiter: UnsafeContinuation<HTTP2ClientState, Never>?

    init(on loop: EventLoop) {
        self.loop = loop
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Called on the loop.
    nonisolated func tell(_ state: HTTP2ClientState) {
        assumeIsolated { news in
            guard news.state == nil else { return }
            news.state = state
            news.waiter?.resume(returning: state)
        }
    }

    func first() async -> HTTP2ClientState {
        await withUnsafeContinuation { continuation in
            if let state { continuation.resume(returning: state) } else { waiter = continuation }
        }
    }
}
