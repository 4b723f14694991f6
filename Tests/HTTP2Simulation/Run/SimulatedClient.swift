import HTTP2
import Simulation

/// A client in a run: the real one, on a loop by virtual time.
final class SimulatedClient {
    let network: PipeNetwork
    let loop: VirtualLoop
    let core: ClientCore
    /// When it was told to be closed by.
    private(set) var closesAt: Int64?
    private let defect: PipeDefect?
    /// The answer before, of the same turn: what `mixesAnswers` gives in place of one.
    private var kept: HTTPResult?
    /// Called with each result.
    var ended: (HTTPResult) -> Void = { _ in }

    init(_ network: PipeNetwork, defect: PipeDefect?) {
        self.network = network
        self.defect = defect
        let loop = VirtualLoop(network)
        self.loop = loop
        // The closures find their client by this: it is there before the first of them is called.
        let own = Reference()
        let core = ClientCore(network.plan.configuration, in: loop) { batch in
            own.client?.take(&batch)
        } stateChanged: { state in
            own.client?.note(state)
        }
        self.core = core
        own.client = self
        core.resolve = { [core, network, loop] number in
            let isUnknown = network.dice.strikes(.nameUnknown, -1, network.transports.count)
            network.schedule(after: Int64(network.draw(100...5000))) {
                loop.perform {
                    let error = HTTP2ConnectionError(.nameResolution, peer: "peer", reason: "unknown")
                    core.resolved(number, isUnknown ? .failure(error) : .success([]))
                }
            }
        }
        loop.turnHasEnded = { [unowned self] in
            network.monitor.turnEnded(of: self)
        }
    }

    private final class Reference {
        weak var client: SimulatedClient?
    }

    // MARK: Its owner

    /// Hands over requests with bodies of at most `body` bytes, in a turn of the loop.
    func submit(count: Int, body: Int) {
        loop.perform { [unowned self] in
            let now = network.instant(at: network.clock)
            let isModest = network.draw(0...9) < 7
            let most = isModest ? core.capacity(at: now) : count
            let batch = makeBatch(min(count, most), body: body)
            if !batch.requests.isEmpty { core.submit(batch) }
        }
    }

    private func makeBatch(_ count: Int, body: Int) -> HTTPRequestBatch {
        var batch = HTTPRequestBatch()
        let shared = batch.addSharedHeaders([
            HTTPHeader("apns-topic", "dev.example.app"),
            HTTPHeader("authorization", "bearer secret", isSensitive: true),
        ])
        for _ in 0..<count {
            let tag = network.monitor.submitted(at: network.clock)
            let path = batch.append { $0 += Array("/3/device/\(tag)".utf8) }
            let id = batch.append { $0 += Array("\(tag)".utf8) }
            let size = network.draw(0...(network.draw(0...9) == 0 ? body : min(body, 2000)))
            let content = batch.append { $0 += [UInt8](repeating: UInt8(ascii: "b"), count: size) }
            batch.add(
                tag: UInt64(tag), shared: shared, path: path,
                fields: [HTTPRequestField(HTTPFieldName("apns-id"), id)], body: content)
            network.note(0, "submit", tag, size)
        }
        return batch
    }

    func cancelQueued() {
        loop.perform { [unowned self] in core.endWaiting(.closed, at: network.instant(at: network.clock)) }
    }

    func replaceConnections() {
        loop.perform { [unowned self] in core.retireAll("its credential was replaced") }
    }

    /// Closes it within so long.
    func close(within limit: Int64) {
        guard closesAt == nil else { return }
        closesAt = network.clock + limit
        loop.perform { [unowned self] in
            let deadline = network.clock + limit
            closesAt = deadline
            core.beginClosing(by: network.instant(at: deadline))
        }
    }

    /// Whether it has let go of all that it had.
    var isGone: Bool { core.resolve == nil && loop.isIdle }

    // MARK: What it says

    private func note(_ state: HTTP2ClientState) {
        switch state {
        case .up(let streams): network.note(0, "up", streams)
        case .replacing(let error): network.note(0, "replacing", 0, 0, error.description)
        case .down(let error, _): network.note(0, "down", 0, 0, error.description)
        }
    }

    private func take(_ batch: inout HTTPResultBatch) {
        kept = nil
        for result in batch.results {
            switch result.outcome {
            case .success(let response): network.note(0, "answered", Int(result.tag), response.status)
            case .failure(let fault): network.note(0, "fault", Int(result.tag), 0, "\(fault)")
            }
            guard let shown = distort(result) else { continue }
            network.monitor.ended(shown, batch, of: self)
            if defect == .repeatsResult, network.draw(0...20) == 0 { network.monitor.ended(shown, batch, of: self) }
            ended(shown)
        }
    }

    /// What the owner gets to see when something between the two is broken.
    private func distort(_ result: HTTPResult) -> HTTPResult? {
        guard let defect else { return result }
        func with(_ outcome: Result<HTTPResponse, HTTPFault>, sentAt: ContinuousClock.Instant?) -> HTTPResult {
            HTTPResult(tag: result.tag, outcome: outcome, sentAt: sentAt, endedAt: result.endedAt)
        }
        switch (defect, result.outcome) {
        case (.deniesUnanswered, .failure(.unanswered(let reason))):
            return with(.failure(.notSent(reason)), sentAt: nil)
        case (.forgetsWhatWasRefused, .failure(.notSent(.refusedStream))):
            return with(.failure(.unanswered(.reset)), sentAt: network.instant(at: 0))
        case (.losesResult, _) where network.draw(0...30) == 0:
            return nil
        case (.delaysResult, .failure(.unanswered(.timeout))):
            network.schedule(after: 1_000_000) { [self] in
                network.monitor.ended(result, HTTPResultBatch(), of: self)
            }
            return nil
        case (.mixesAnswers, .success):
            defer { kept = result }
            return kept.map { with($0.outcome, sentAt: result.sentAt) } ?? result
        default:
            return result
        }
    }
}
