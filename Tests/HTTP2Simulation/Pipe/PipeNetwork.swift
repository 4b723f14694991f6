import OutboxCore
import Simulation

/// Whoever keeps virtual time.
protocol VirtualTime: AnyObject {
    /// Microseconds since the beginning.
    var clock: Int64 { get }
    /// Lets something happen later.
    func schedule(after delay: Int64, _ run: @escaping () -> Void)
}

/// What pipes and peers share: time, chance, faults and the trace.
final class PipeNetwork {
    private unowned let time: any VirtualTime
    let plan: PipePlan
    var dice: Dice<PipeFault>
    var trace: Trace
    private var random: SplitMix
    /// Servers, in the order in which connections were made; nil where none came to be.
    var peers: [ScriptedPeer] = []
    /// The clients' processes stand still until then: SIGSTOP, or a machine that is too busy.
    var pausedUntil: Int64 = 0
    /// What the run is held to.
    let monitor: ClientMonitor
    /// The clients' ends of all connections, in the order in which they were made: number 1 is the first.
    private(set) var transports: [MemoryTransport] = []

    /// Where all clocks begin. Only differences of it count.
    private static let origin = ContinuousClock.now

    /// A network without connections.
    init(_ plan: PipePlan, _ options: PipeOptions, time: any VirtualTime) {
        self.plan = plan
        self.time = time
        dice = Dice(seed: plan.seed, rates: plan.rates, allowed: options.allowedFaults)
        trace = Trace(keepsLines: options.keepsTrace)
        random = SplitMix(seed: plan.seed ^ 0x9199)
        monitor = ClientMonitor(plan)
    }

    var clock: Int64 { time.clock }

    func schedule(after delay: Int64, _ run: @escaping () -> Void) {
        time.schedule(after: delay, run)
    }

    func instant(at clock: Int64) -> ContinuousClock.Instant { Self.origin + .microseconds(clock) }

    /// The first microsecond that is not before `instant`.
    func time(of instant: ContinuousClock.Instant) -> Int64 {
        let (seconds, attoseconds) = Self.origin.duration(to: instant).components
        return seconds * 1_000_000 + (attoseconds + 999_999_999_999) / 1_000_000_000_000
    }

    /// A number by chance.
    func draw(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }

    /// How long something takes that takes no time worth speaking of.
    var latency: Int64 { Int64(draw(1...200)) }

    /// One more connection.
    func makeTransport(on loop: VirtualLoop) -> MemoryTransport {
        let transport = MemoryTransport(transports.count + 1, self, on: loop)
        transports.append(transport)
        return transport
    }

    func note(
        _ connection: Int, _ what: StaticString, _ first: Int = 0, _ second: Int = 0,
        _ detail: @autoclosure () -> String = ""
    ) {
        trace.note(
            at: clock, worker: connection - 1, what, first, second, detail: "\(first) \(second) \(detail())")
    }
}
