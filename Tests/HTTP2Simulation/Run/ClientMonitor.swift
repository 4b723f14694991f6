import HTTP2
import Simulation

/// The rules that every run is held to, from what both sides have seen.
///
/// - `one end`: each request has exactly one result.
/// - `hangs`, `late`, `sent late`: it has it at its deadline at the latest, and is not sent after three quarters of it.
/// - `was looked at`: what is called not sent, and what is sent again, was refused or disowned by the peer each time
/// that
///   it came there, and the client has read that.
/// - `refused called unknown`: what the peer refused or disowned, and the client has read it, is not called unanswered.
/// - `answer lost`, `wrong answer`: what was answered whole, and read, has that answer and no other result.
/// - `unheard`: neither is anything lost of what had come when a write failed.
/// - `too many streams`, `after GOAWAY`, `early`: never a stream more than the peer allows, none after its GOAWAY, none
///   before its first SETTINGS.
/// - `ping`: no PING before its time. `HTTP/2`, `blamed`: a correct server finds no fault, and none is found with it.
/// - `bounds`, `counts`: bounds are kept, and the statistics say what the wire says.
/// - `stuck`, `open`: when faults have ended all comes to its end, and a client that is closed leaves nothing behind.
final class ClientMonitor {
    /// One request that was handed over.
    private struct Request {
        let submittedAt: Int64
        var end: End?
    }

    private enum End {
        case answered, notSent, unanswered
    }

    private(set) var violation: Violation?
    private(set) var answered = 0
    private(set) var notSent = 0
    private(set) var unanswered = 0
    /// When a request last waited to be sent.
    private(set) var waitedAt: Int64 = -1
    private let plan: PipePlan
    private var requests: [Request] = []
    /// The first request that may have no result.
    private var oldest = 0
    /// What peers have seen of each request.
    private var records: [[PeerRecord]] = []

    init(_ plan: PipePlan) {
        self.plan = plan
    }

    /// Requests handed over; tags count from 0.
    var count: Int { requests.count }
    /// Requests that peers have seen more than once.
    var repeated: Int { records.count { $0.count > 1 } }
    var allHaveEnded: Bool { requests.allSatisfy { $0.end != nil } }

    func found(_ rule: String, _ detail: @autoclosure () -> String) {
        if violation == nil { violation = Violation(rule: rule, detail: detail()) }
    }

    /// A request is handed over; answers its tag.
    func submitted(at clock: Int64) -> Int {
        requests.append(Request(submittedAt: clock))
        records.append([])
        return requests.count - 1
    }

    /// A request came to a peer.
    func seen(_ record: PeerRecord) {
        guard records.indices.contains(record.tag) else { return found("one end", "nobody asked for \(record.tag)") }
        if let end = requests[record.tag].end, end != .unanswered {
            found("was looked at", "\(record.tag) on connection \(record.connection), after its end: \(end)")
        }
        records[record.tag].append(record)
    }

    /// How much later than due something may be: a timer's millisecond, one more, and no time at all.
    private static let slack: Int64 = 5000

    // MARK: Ends

    /// A request has a result.
    func ended(_ result: HTTPResult, _ bytes: HTTPResultBatch, of client: SimulatedClient) {
        let tag = Int(result.tag)
        guard requests.indices.contains(tag), requests[tag].end == nil else {
            return found("one end", "\(tag) has ended before")
        }
        let network = client.network
        let end = max(requests[tag].submittedAt + plan.requestTimeout, network.pausedUntil) + Self.slack
        if network.clock > end { found("late", "\(tag): \(network.clock - end) µs too late") }
        if let sentAt = result.sentAt.map(network.time(of:)),
            sentAt >= requests[tag].submittedAt + plan.requestTimeout * 3 / 4
        {
            found("sent late", "\(tag)")
        }
        let tries = records[tag]
        // The one that the result is about, if it came to the peer at all: those before had been heard of.
        let current = result.sentAt.flatMap { sentAt in tries.last { $0.seenAt > network.time(of: sentAt) } }
        for record in tries where record !== current {
            guard !record.isDisclaimed || !isHeard(record.disclaimerEnd, record, network) else { continue }
            found("was looked at", "\(tag) on connection \(record.connection), and it is \(describe(result))")
        }
        switch result.outcome {
        case .success(let response):
            answered += 1
            requests[tag].end = .answered
            check(response, bytes, tag, current, network)
        case .failure(.notSent):
            notSent += 1
            requests[tag].end = .notSent
        case .failure(.unanswered(let reason)):
            unanswered += 1
            requests[tag].end = .unanswered
            check(reason, tag, current, client)
        }
    }

    private func describe(_ result: HTTPResult) -> String {
        switch result.outcome {
        case .success: "sent again"
        case .failure(let fault): "\(fault)"
        }
    }

    /// Whether the client has read the frame that ends there.
    private func isHeard(_ end: Int?, _ record: PeerRecord, _ network: PipeNetwork) -> Bool {
        guard let end else { return false }
        return end <= network.transports[record.connection - 1].view.readCount
    }

    private func check(
        _ response: HTTPResponse, _ bytes: HTTPResultBatch, _ tag: Int, _ record: PeerRecord?,
        _ network: PipeNetwork
    ) {
        guard let record, let answer = record.answer, isHeard(record.answerEnd, record, network) else {
            return found("wrong answer", "\(tag) was not answered")
        }
        let body = bytes[response.body]
        let limit = plan.configuration.bodyLimit
        let isRight =
            response.status == answer.status && body.count == min(answer.size, limit)
            && response.bodyWasCut == (answer.size > limit)
            && body.enumerated().allSatisfy { $0.element == answer.byte($0.offset) }
            && bytes[response.captured[0]].elementsEqual("\(tag)".utf8)
        if !isRight { found("wrong answer", "\(tag): \(response.status), \(body.count) bytes of \(answer.size)") }
    }

    private func check(_ reason: HTTPFaultReason, _ tag: Int, _ record: PeerRecord?, _ client: SimulatedClient) {
        if reason == .malformedAnswer { found("blamed", "\(tag): malformed") }
        guard let record else { return }
        let transport = client.network.transports[record.connection - 1]
        // When its time was over in this turn, what came later in the turn came too late.
        let heard = reason == .timeout ? transport.view.readBefore : transport.view.readCount
        let disclaimer = record.isDisclaimed ? record.disclaimerEnd : nil
        if let disclaimer, disclaimer <= heard { found("refused called unknown", "\(tag): \(reason)") }
        if let end = record.answerEnd, end <= heard { found("answer lost", "\(tag): \(reason)") }
        if reason == .goneAway, record.headersEnd == nil { found("refused called unknown", "\(tag): \(reason)") }
        if reason == .connectionLost, transport.view.hasFailedWrite, client.closesAt == nil,
            let end = record.answerEnd ?? disclaimer, end <= transport.arrivedAtClose
        {
            found("unheard", "\(tag): connection \(record.connection) closed with its peer's last words unread")
        }
    }

    // MARK: Turns

    /// A turn of a client's loop has ended.
    func turnEnded(of client: SimulatedClient) {
        let statistics = client.core.currentStatistics
        if statistics.waiting > 0 { waitedAt = client.network.clock }
        let bounds = plan.configuration
        if statistics.inFlight > bounds.concurrency
            || statistics.waiting + statistics.inFlight > bounds.concurrency + bounds.queueLimit
        {
            found("bounds", "\(statistics.inFlight) in flight, \(statistics.waiting) waiting")
        }
        let views = client.loop.made.map(\.view)
        // Without streams nghttp2 reads nothing behind a GOAWAY, and so no second one.
        let goAways = views.reduce(0) { $0 + $1.goAways }
        let least = views.count { $0.goAways > 0 }
        if statistics.goAways < least || statistics.goAways > goAways {
            found("counts", "\(statistics.goAways) of \(least) to \(goAways) GOAWAYs")
        }
        if views.allSatisfy({ !$0.wasBlocked && !$0.hasFailedWrite }) {
            let written = views.reduce(0) { $0 + $1.requests }
            if statistics.sent != written { found("counts", "\(statistics.sent) sent, \(written) written") }
        }
        checkDeadlines(client)
    }

    /// Whether a request waits for its result although its time is over.
    func checkDeadlines(_ client: SimulatedClient) {
        while oldest < requests.count, requests[oldest].end != nil { oldest += 1 }
        guard oldest < requests.count else { return }
        let due = max(requests[oldest].submittedAt + plan.requestTimeout, client.network.pausedUntil)
        if client.network.clock > due + 4 * Self.slack { found("hangs", "\(oldest) has no result") }
    }
}
