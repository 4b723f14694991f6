import EventLoop

/// The world as it is: the loop's clock and timers, and sockets.
final class LoopEnvironment: HTTP2Environment {
    let loop: EventLoop
    let configuration: HTTP2ClientConfiguration
    private var context: TLSContext?

    init(_ configuration: HTTP2ClientConfiguration, on loop: EventLoop) {
        self.configuration = configuration
        self.loop = loop
    }

    /// The TLS context, made on first use and again after it could not be made.
    func tlsContext() throws(HTTP2ConnectionError) -> TLSContext {
        if let context { return context }
        let made = try TLSContext(caFile: configuration.caFile, peer: configuration.peer)
        context = made
        return made
    }

    var now: ContinuousClock.Instant { .now }

    func draw(_ range: ClosedRange<Int>) -> Int { Int.random(in: range) }

    func arm(at due: ContinuousClock.Instant, _ fire: @escaping () -> Void) -> TimerID { loop.arm(at: due, fire) }

    func cancel(_ timer: TimerID) { loop.cancel(timer) }

    func atEndOfTurn(_ handler: any EndOfTurnHandler) { loop.atEndOfTurn(handler) }

    func makeTransport(number: Int) -> any HTTP2Transport { SocketTransport(self) }
}
