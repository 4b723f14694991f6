import CNGHTTP2
import EventLoop
import Glibc

/// The stand-in itself, confined to its loop: takes connections, judges requests, answers, keeps the record.
final class APNSServer: RequestHandler {
    /// One connection and what APNs remembers about it.
    private final class Client {
        let connection: ServerConnection
        var keyID: String?
        var streamLimit: UInt32
        var isWedged = false
        var fate: APNSChance.Fate
        /// The newest stream whose request has arrived.
        var newestStream: Int32 = 0
        /// The last stream that a GOAWAY has left to be looked at.
        var lastStream = Int32.max

        init(_ connection: ServerConnection, streamLimit: UInt32, fate: APNSChance.Fate) {
            self.connection = connection
            self.streamLimit = streamLimit
            self.fate = fate
        }
    }

    private struct Waiter {
        let number: Int
        let count: Int
        let timer: TimerID
        let resume: () -> Void
    }

    let configuration: FakeAPNSConfiguration
    var clock = WallClock()
    private(set) var statistics = FakeAPNSStatistics()
    private(set) var seen: [SeenRequest] = []
    /// How often each `apns-id` was accepted, where the configuration counts that.
    private(set) var accepts: [String: Int] = [:]
    /// What every request with right headers is answered with; nil for what its token asks for.
    var verdict: FakeAPNSVerdict?
    private let loop: EventLoop
    private let tls: TLSServerContext
    private let rules: APNSRequestRules
    private let log: RequestLog?
    private var check: ProviderTokenCheck
    private var misbehaviour = APNSMisbehaviour()
    private var identifiers = IdentifierSource()
    private var listener: ListeningSocket?
    private var clients: [Int: Client] = [:]
    private var waiters: [Waiter] = []
    private var waitersSoFar = 0
    private var chance: APNSChance
    private lazy var unanswered = UnansweredRequests(delay: configuration.delay, on: loop) { [unowned self] in
        serve($0, on: $1)
    }

    init(_ configuration: FakeAPNSConfiguration, on loop: EventLoop) throws(FakeServerError) {
        self.configuration = configuration
        self.loop = loop
        tls = try TLSServerContext(configuration.identity, offersHTTP2: configuration.offersHTTP2)
        rules = APNSRequestRules(topics: configuration.topics)
        check = try ProviderTokenCheck(keys: configuration.keys)
        chance = APNSChance(configuration.rates)
        verdict = configuration.verdict
        log = try RequestLog(configuration.log)
    }

    /// Starts to listen and answers the port.
    func start() throws(FakeServerError) -> UInt16 {
        // A client that goes away must cost an error code, not the process.
        signal(SIGPIPE, SIG_IGN)
        let listener = try ListeningSocket(host: configuration.host, port: configuration.port, on: loop) {
            [unowned self] in accept($0)
        }
        self.listener = listener
        return listener.port
    }

    /// Ends everything at once.
    func stop() {
        listener?.stop()
        listener = nil
        dropConnections()
        log?.flush()
        for waiter in waiters {
            loop.cancel(waiter.timer)
            waiter.resume()
        }
        waiters.removeAll()
    }

    /// Closes all connections without a word.
    func dropConnections() {
        for client in Array(clients.values) { client.connection.close() }
    }

    /// Sends GOAWAY with `lastStream` and `debugData` on all connections.
    func goAway(lastStream: Int32, debugData: [UInt8]) {
        for client in clients.values {
            client.lastStream = min(client.lastStream, lastStream)
            statistics.goAways += 1
            client.connection.goAway(
                lastStream: lastStream, code: UInt32(NGHTTP2_NO_ERROR.rawValue), debugData: debugData)
        }
    }

    /// Announces a new stream limit on all connections.
    func setStreamLimit(_ limit: UInt32) {
        for client in clients.values { change(client, to: limit) }
    }

    /// Looks at no request from now on until this is taken back.
    func hold(_ isHeld: Bool) {
        unanswered.isHeld = isHeld
    }

    /// Looks at so many of the requests that wait, oldest first, also while they are held.
    func answer(oldest count: Int) {
        unanswered.serve(oldest: count)
    }

    /// Requests that have arrived and were not looked at.
    var waiting: Int { unanswered.count }

    /// Calls `resume` once `count` requests were seen, at `deadline` at the latest.
    func wait(for count: Int, until deadline: ContinuousClock.Instant, resume: @escaping () -> Void) {
        guard statistics.requests < count else { return resume() }
        waitersSoFar += 1
        let number = waitersSoFar
        let timer = loop.arm(at: deadline) { [weak self] in
            self?.waiters.removeAll { $0.number == number }
            resume()
        }
        waiters.append(Waiter(number: number, count: count, timer: timer, resume: resume))
    }

    private func accept(_ descriptor: Int32) {
        guard let ssl = tls.accept(descriptor) else {
            close(descriptor)
            return
        }
        statistics.connections += 1
        let number = statistics.connections
        let settings = ServerSettings(concurrentStreams: configuration.streamsBeforeToken)
        let connection = ServerConnection(
            number: number, descriptor: descriptor, ssl: ssl, settings: settings, on: loop, handler: self)
        clients[number] = Client(
            connection, streamLimit: configuration.streamsBeforeToken, fate: chance.fate())
        statistics.openConnections = clients.count
        connection.start()
    }

    // MARK: Requests

    func connectionOpened(_ connection: ServerConnection) {}

    func requestArrived(_ stream: ServerStream, on connection: ServerConnection) {
        statistics.requests += 1
        clients[connection.number]?.newestStream = stream.number
        unanswered.add(stream, on: connection)
        wakeWaiters()
    }

    private func serve(_ stream: ServerStream, on connection: ServerConnection) {
        // What is behind a GOAWAY counts as never looked at, though it may have come before that was sent.
        guard let client = clients[connection.number], stream.number <= client.lastStream else { return }
        var finding = ProviderTokenCheck.Finding()
        let fields = APNSRequestFields(stream)
        let answer = judge(stream, fields, client, &finding)
        statistics.providerTokens = check.distinctTokens
        let record = RequestRecord(
            service: "apns", connection: connection.number, stream: stream, method: fields.method, path: fields.path,
            keyID: finding.keyID, issuedAt: finding.issuedAt, status: answer.status, note: answer.note)
        if let log {
            let now = clock.microseconds
            log.line { record.append(to: &$0, microseconds: now) }
        }
        if seen.count < configuration.keptRequests {
            seen.append(record.seen(token: fields.deviceToken(in: stream).map { stream.text($0) } ?? ""))
        }
        carryOut(answer, stream, fields, client)
        throttle(client, after: answer)
    }

    func connectionWillSend() {
        log?.flush()
    }

    func clientBrokeProtocol(on connection: ServerConnection) {
        statistics.protocolErrors += 1
    }

    func connectionClosed(_ connection: ServerConnection) {
        clients[connection.number] = nil
        statistics.openConnections = clients.count
    }

    private func judge(
        _ stream: ServerStream, _ fields: APNSRequestFields, _ client: Client,
        _ finding: inout ProviderTokenCheck.Finding
    ) -> APNSAnswer {
        if let answer = APNSRequestRules.faultOfTarget(stream, fields) { return answer }
        guard let authorization = fields.authorization else {
            return .rejected(status: 403, reason: "MissingProviderToken")
        }
        finding = check.examine(stream.headerBytes[authorization])
        if client.isWedged { return .rejected(status: 403, reason: "ExpiredProviderToken") }
        guard finding.isGenuine, let keyID = finding.keyID, let issuedAt = finding.issuedAt else {
            return .rejected(status: 403, reason: "InvalidProviderToken")
        }
        if abs(clock.milliseconds / 1000 - issuedAt) > ProviderTokenCheck.ageLimit {
            client.isWedged = configuration.wedgesAfterExpiredToken
            return .rejected(status: 403, reason: "ExpiredProviderToken")
        }
        guard client.keyID == nil || client.keyID == keyID else {
            return .rejected(status: 403, reason: "UnrelatedKeyIdInToken")
        }
        if client.keyID == nil {
            client.keyID = keyID
            change(client, to: configuration.streams)
        }
        if let answer = rules.faultOfRequest(stream, fields) { return answer }
        if let verdict { return verdict.answer }
        if let answer = strike(stream, client) { return answer }
        guard let token = fields.deviceToken(in: stream) else { return .accepted }
        return misbehaviour.answer(to: stream.headerBytes[token]) ?? .accepted
    }

    /// What the rates bring upon a request and its connection.
    private func strike(_ stream: ServerStream, _ client: Client) -> APNSAnswer? {
        switch chance.event(&client.fate) {
        case .nothing: return nil
        case .refused: return .refusedThenClosed
        case .departure(let departure):
            if departure.isAnnounced { goAway(client, lastStream: .max) }
            // Not beyond what has arrived: nghttp2 looks at no new stream after it, and the client would wait for it.
            let last = min(stream.number + 2 * departure.streamsBeyond, client.newestStream)
            goAway(client, lastStream: max(0, last))
            return departure.streamsBeyond < 0 ? .goneAway : nil
        }
    }

    private func throttle(_ client: Client, after answer: APNSAnswer) {
        if let limit = chance.newLimit(&client.fate) { change(client, to: limit) }
        guard configuration.throttlesAfterRejection, client.keyID != nil else { return }
        switch answer {
        case .accepted: change(client, to: configuration.streams)
        case .rejected: change(client, to: 1)
        default: break
        }
    }

    private func change(_ client: Client, to limit: UInt32) {
        guard client.streamLimit != limit else { return }
        client.streamLimit = limit
        statistics.limitChanges += 1
        client.connection.setStreamLimit(limit)
    }

    private func wakeWaiters() {
        guard !waiters.isEmpty else { return }
        let count = statistics.requests
        for waiter in waiters where waiter.count <= count {
            loop.cancel(waiter.timer)
            waiter.resume()
        }
        waiters.removeAll { $0.count <= count }
    }

    // MARK: Answers

    private func carryOut(
        _ answer: APNSAnswer, _ stream: ServerStream, _ fields: APNSRequestFields, _ client: Client
    ) {
        let connection = client.connection
        switch answer {
        case .accepted:
            accept(stream, fields, connection)
        case .rejected(let status, let reason):
            reject(stream, fields, connection, status, reason)
        case .unreadable:
            statistics.rejected += 1
            stream.answer(status: 500)
            stream.addAnswerHeader("content-type") { $0.append(contentsOf: "text/html".utf8) }
            stream.answerBody.append(contentsOf: "<html><body>500</body></html>".utf8)
            connection.answer(stream)
        case .slow:
            let number = stream.number
            loop.arm(at: .now + configuration.slowness) { [weak self, weak connection] in
                guard let self, let connection, connection.isOpen(stream, number: number) else { return }
                self.accept(stream, fields, connection)
            }
        case .acceptedThenGoneAway:
            goAway(client, lastStream: stream.number)
            accept(stream, fields, connection)
        case .silence, .reset, .refused, .refusedThenClosed, .closed, .goneAway:
            statistics.unanswered += 1
            leaveUnanswered(answer, stream, client)
        }
    }

    private func leaveUnanswered(_ answer: APNSAnswer, _ stream: ServerStream, _ client: Client) {
        let connection = client.connection
        switch answer {
        case .reset: connection.reset(stream, code: UInt32(NGHTTP2_INTERNAL_ERROR.rawValue))
        case .refused: connection.reset(stream, code: UInt32(NGHTTP2_REFUSED_STREAM.rawValue))
        case .refusedThenClosed:
            connection.reset(
                stream, code: UInt32(NGHTTP2_REFUSED_STREAM.rawValue), andAgain: UInt32(NGHTTP2_STREAM_CLOSED.rawValue))
        case .closed: connection.drop()
        case .goneAway where client.lastStream >= stream.number:
            goAway(client, lastStream: max(0, stream.number - 2))
        default: break
        }
    }

    private func goAway(_ client: Client, lastStream: Int32) {
        statistics.goAways += 1
        client.lastStream = min(client.lastStream, lastStream)
        client.connection.goAway(
            lastStream: lastStream, code: UInt32(NGHTTP2_NO_ERROR.rawValue),
            debugData: Array("{\"reason\":\"Shutdown\"}".utf8))
    }

    private func accept(_ stream: ServerStream, _ fields: APNSRequestFields, _ connection: ServerConnection) {
        statistics.accepted += 1
        if configuration.countsAccepts, let identifier = fields.identifier {
            accepts[stream.text(identifier), default: 0] += 1
        }
        stream.answer(status: 200)
        addIdentifiers(stream, fields)
        connection.answer(stream)
    }

    private func reject(
        _ stream: ServerStream, _ fields: APNSRequestFields, _ connection: ServerConnection, _ status: Int,
        _ reason: StaticString
    ) {
        statistics.rejected += 1
        stream.answer(status: status)
        addIdentifiers(stream, fields)
        stream.addAnswerHeader("content-type") { $0.append(contentsOf: "application/json".utf8) }
        stream.answerBody.append(contentsOf: "{\"reason\":\"\(reason)\"".utf8)
        if status == 410 { stream.answerBody.append(contentsOf: ",\"timestamp\":\(clock.milliseconds)".utf8) }
        stream.answerBody.append(UInt8(ascii: "}"))
        connection.answer(stream)
    }

    private func addIdentifiers(_ stream: ServerStream, _ fields: APNSRequestFields) {
        if let given = fields.identifier {
            stream.addAnswerHeader("apns-id") { $0.append(contentsOf: stream.headerBytes[given]) }
        } else {
            // The real service writes its own in upper case.
            stream.addAnswerHeader("apns-id") { identifiers.append(upperCase: true, to: &$0) }
        }
        if configuration.isSandbox {
            stream.addAnswerHeader("apns-unique-id") { identifiers.append(upperCase: false, to: &$0) }
        }
    }
}
