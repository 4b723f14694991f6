package import EventLoop

/// All that a client asks of the world around it: the time, chance, to be called later, and ways to the peer.
///
/// `LoopEnvironment` is the world; a simulation has another, by virtual time. Confined to one thread. Called once a
/// turn, never once a request.
package protocol HTTP2Environment: AnyObject {
    /// The time. It never goes back.
    var now: ContinuousClock.Instant { get }
    /// A number of `range` by chance.
    func draw(_ range: ClosedRange<Int>) -> Int
    /// Calls `fire` once, not before `due`; never from within this call.
    func arm(at due: ContinuousClock.Instant, _ fire: @escaping () -> Void) -> TimerID
    /// Cancels a timer; harmless if it has fired.
    func cancel(_ timer: TimerID)
    /// Calls `handler` once when everything that is ready now has run.
    func atEndOfTurn(_ handler: any EndOfTurnHandler)
    /// A way to the peer, for connection `number`, that has not begun to be made.
    func makeTransport(number: Int) -> any HTTP2Transport
}
