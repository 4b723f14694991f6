import EventLoop
import HTTP2

/// An event loop by virtual time, with the order that `EventLoop` keeps: in a turn, first what is ready, then timers,
/// then jobs, then the end of the turn. No time passes within a turn.
final class VirtualLoop: HTTP2Environment {
    private unowned let network: PipeNetwork
    private var timers: [(due: ContinuousClock.Instant, number: UInt64, fire: () -> Void)] = []
    private var timersMade: UInt64 = 0
    private var endOfTurn: [any EndOfTurnHandler] = []
    private var jobs: [() -> Void] = []
    private var transports: [MemoryTransport] = []
    /// All that were ever made, in order.
    private(set) var made: [MemoryTransport] = []
    /// When the next turn begins; a turn that was planned for another time is none any more.
    private var turnAt: Int64?
    private var turnsPlanned = 0
    /// Called when a turn has ended.
    var turnHasEnded: () -> Void = {}

    init(_ network: PipeNetwork) {
        self.network = network
    }

    // MARK: For the client

    var now: ContinuousClock.Instant { network.instant(at: network.clock) }

    func draw(_ range: ClosedRange<Int>) -> Int { network.draw(range) }

    func arm(at due: ContinuousClock.Instant, _ fire: @escaping () -> Void) -> TimerID {
        timersMade += 1
        let place = timers.firstIndex { $0.due > due } ?? timers.count
        timers.insert((due, timersMade, fire), at: place)
        planTimers()
        return TimerID(number: timersMade)
    }

    func cancel(_ timer: TimerID) {
        timers.removeAll { TimerID(number: $0.number) == timer }
    }

    func atEndOfTurn(_ handler: any EndOfTurnHandler) {
        endOfTurn.append(handler)
        plan(at: network.clock)
    }

    func makeTransport(number: Int) -> any HTTP2Transport {
        let transport = network.makeTransport(on: self)
        transports.append(transport)
        made.append(transport)
        return transport
    }

    // MARK: For the world

    /// Runs `job` in a turn of its own or in one that is due.
    func perform(_ job: @escaping () -> Void) {
        jobs.append(job)
        plan(at: network.clock)
    }

    /// Something may have become ready.
    func poll() {
        if transports.contains(where: { !$0.ready.isEmpty }) { plan(at: network.clock + network.latency) }
    }

    func forget(_ transport: MemoryTransport) {
        transports.removeAll { $0 === transport }
    }

    /// Whether all connections are closed and nothing waits to be done.
    var isIdle: Bool { jobs.isEmpty && endOfTurn.isEmpty && transports.isEmpty }

    // MARK: Turns

    private func planTimers() {
        guard let due = timers.first?.due else { return }
        // Up to a millisecond late, as with epoll.
        plan(at: max(network.clock, network.time(of: due)) + Int64(network.draw(0...1000)))
    }

    private func plan(at time: Int64) {
        let time = max(time, network.pausedUntil, network.clock)
        if let turnAt, turnAt <= time { return }
        turnAt = time
        turnsPlanned += 1
        let number = turnsPlanned
        network.schedule(after: time - network.clock) { [weak self] in
            guard let self, turnsPlanned == number else { return }
            turnAt = nil
            turn()
        }
    }

    private func turn() {
        guard network.clock >= network.pausedUntil else { return plan(at: network.pausedUntil) }
        let watched = transports
        for transport in watched { transport.view.turnBegins() }
        for transport in watched {
            let ready = transport.ready
            if !ready.isEmpty { transport.owner?.descriptorReady(ready) }
        }
        // A timer that is armed here for now waits for the next turn.
        let last = timersMade
        while let place = timers.firstIndex(where: { $0.due < now || $0.due == now && $0.number <= last }) {
            timers.remove(at: place).fire()
        }
        let waiting = jobs
        jobs = []
        for job in waiting { job() }
        let handlers = endOfTurn
        endOfTurn = []
        for handler in handlers { handler.turnEnded() }
        turnHasEnded()
        if !endOfTurn.isEmpty || !jobs.isEmpty { plan(at: network.clock + Int64(network.draw(1...20))) }
        poll()
        planTimers()
    }
}
