import HTTP2
import Simulation

/// One run: a client, its owner, and peers over a network in memory, by virtual time, in one thread.
///
/// Real are the client's pool, connections and sessions, and nghttp2 at both ends. Scripted are sockets and TLS, the
/// peers' decisions, names, clocks and chance.
final class PipeSimulation: VirtualTime {
    private let plan: PipePlan
    private let options: PipeOptions
    private var queue = EventQueue()
    private(set) var clock: Int64 = 0
    private lazy var network = PipeNetwork(plan, options, time: self)
    private var clients: [SimulatedClient] = []
    private var isLiveness = false
    /// Answers of status 200 since faults have ended.
    private var goodAnswers = 0

    init(_ plan: PipePlan, _ options: PipeOptions) {
        self.plan = plan
        self.options = options
    }

    private var monitor: ClientMonitor { network.monitor }
    private var current: SimulatedClient { clients[clients.count - 1] }

    func schedule(after delay: Int64, _ run: @escaping () -> Void) {
        queue.push(at: clock + max(0, delay), run)
    }

    // MARK: Running

    /// Runs to the end; answers what was found.
    func run() -> PipeReport {
        makeClient()
        for (index, (at, doing)) in plan.doings.enumerated() where options.allowedDoings?.contains(index) ?? true {
            schedule(after: at) { [unowned self] in perform(doing) }
        }
        for moment in 0..<Int(plan.safetyLength / 500_000) {
            schedule(after: Int64(moment) * 500_000 + 250_000) { [unowned self] in standStill(moment) }
        }
        advance(until: plan.safetyLength)
        beginLiveness()
        advance(until: clock + Self.livenessBound) { [unowned self] in goodAnswers >= Self.answersWanted }
        if goodAnswers < Self.answersWanted { monitor.found("stuck", "no answers although all faults have ended") }
        close()
        return report
    }

    /// Answers after which things are well again.
    private static let answersWanted = 3
    /// Within which that must be so: the longest wait for a connection, the time to find out that one is dead, and all
    /// requests that it takes to do so.
    private static let livenessBound: Int64 = 300_000_000

    private func advance(until end: Int64, _ isDone: () -> Bool = { false }) {
        while monitor.violation == nil, let next = queue.nextAt, next <= end, let event = queue.pop() {
            clock = max(clock, event.at)
            event.run()
            if isDone() { return }
        }
        clock = max(clock, end)
    }

    private func makeClient() {
        let client = SimulatedClient(network, defect: options.defect)
        client.ended = { [unowned self] result in
            guard isLiveness, case .success(let response) = result.outcome, response.status == 200 else { return }
            goodAnswers += 1
        }
        clients.append(client)
    }

    private func perform(_ doing: PipePlan.Doing) {
        switch doing {
        case .submit(let count, let body): current.submit(count: count, body: body)
        case .cancelQueued: current.cancelQueued()
        case .replaceConnections: current.replaceConnections()
        case .restart(let limit):
            current.close(within: limit)
            makeClient()
        }
    }

    private func standStill(_ moment: Int) {
        guard network.dice.strikes(.pause, -1, moment) else { return }
        let length = network.dice.draw(10_000...Int(plan.requestTimeout) * 3 / 2, -1, moment, salt: 5)
        network.note(0, "stands still", length)
        network.pausedUntil = max(network.pausedUntil, clock + Int64(length))
    }

    // MARK: The end

    /// Faults end, and requests go on until they are answered.
    private func beginLiveness() {
        guard monitor.violation == nil else { return }
        isLiveness = true
        network.dice.isOn = false
        network.note(0, "faults end")
        for peer in network.peers { peer.heal() }
        probe()
    }

    private func probe() {
        current.submit(count: 1, body: 100)
        schedule(after: 1_000_000) { [unowned self] in
            if goodAnswers < Self.answersWanted { probe() }
        }
    }

    private func close() {
        guard monitor.violation == nil else { return }
        current.close(within: 2_000_000)
        advance(until: max(clock, network.pausedUntil) + 3_500_000)
        guard monitor.violation == nil else { return }
        if !monitor.allHaveEnded { monitor.found("one end", "a request has none") }
        for client in clients where !client.isGone { monitor.found("open", "a client that is closed holds something") }
        checkMemory()
    }

    private func checkMemory() {
        let cores = clients.map { WeakCore(core: $0.core) }
        clients = []
        if cores.contains(where: { $0.core != nil }) { monitor.found("open", "somebody holds a client") }
    }

    private struct WeakCore {
        weak var core: ClientCore?
    }

    private var report: PipeReport {
        PipeReport(
            seed: plan.seed, hash: network.trace.hash, violation: monitor.violation, events: network.trace.count,
            virtualTime: clock, faults: network.dice.counts, struck: network.dice.struck, requests: monitor.count,
            answered: monitor.answered, notSent: monitor.notSent, unanswered: monitor.unanswered,
            connections: network.transports.count, repeated: monitor.repeated, lines: network.trace.lines)
    }
}
