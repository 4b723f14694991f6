import CNGHTTP2
import EventLoop

/// The stand-in itself, confined to its loop: takes connections, judges requests, answers, keeps the record.
final class APNSServer: RequestHandler {
    let configuration: FakeAPNSConfiguration
    var clock = WallClock()
    private(set) var statistics = FakeAPNSStatistics()
    private(set) var seen: [SeenRequest] = []
    /// How often each `apns-id` was accepted, where the configuration counts that.
    private(set) var accepts: [String: Int] = [:]
    /// What every request with right headers is answered with; nil for what its token asks for.
    var verdict: FakeAPNSVerdict?
    let host: ServiceHost
    private let rules: APNSRequestRules
    private let rulesOfKeys: [String: APNSRequestRules]
    private let log: RequestLog?
    private var check: ProviderTokenCheck
    private var misbehaviour: APNSMisbehaviour
    private var identifiers = IdentifierSource()
    private var date = DateHeader()
    private var clients: [Int: APNSClient] = [:]
    private var chance: ConnectionChance
    private var streams: UInt32
    private lazy var scenario = ScenarioPlay(Scenario(), for: .apns, on: host.loop)
    private lazy var unanswered = UnansweredRequests(delay: configuration.delay, on: host.loop) { [unowned self] in
        serve($0, on: $1)
    }

    init(_ configuration: FakeAPNSConfiguration, on loop: EventLoop) throws(FakeServerError) {
        self.configuration = configuration
        host = try ServiceHost(
            configuration.identity, offersHTTP2: configuration.offersHTTP2,
            settings: ServerSettings(concurrentStreams: configuration.streamsBeforeToken), on: loop)
        rules = APNSRequestRules(topics: configuration.topics, isStrict: configuration.isStrict)
        rulesOfKeys = configuration.keys.filter { !$0.topics.isEmpty }.reduce(into: [:]) {
            $0[$1.keyID] = APNSRequestRules(topics: $1.topics, isStrict: configuration.isStrict)
        }
        misbehaviour = APNSMisbehaviour(slowness: configuration.slowness)
        check = try ProviderTokenCheck(keys: configuration.keys)
        streams = configuration.streams
        chance = ConnectionChance(configuration.rates)
        verdict = configuration.verdict
        log = try RequestLog(configuration.log)
    }

    /// Starts to listen and answers the port.
    func start() throws(FakeServerError) -> UInt16 {
        try host.start(host: configuration.host, port: configuration.port, handler: self)
    }

    /// Ends everything at once.
    func stop() {
        scenario.end()
        host.stop()
        log?.flush()
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

    /// Plays `new` from now on, instead of what was played before.
    func play(_ new: Scenario) {
        scenario.end()
        host.isFrozen = false
        clock.offset = 0
        setAdmittedStreams(configuration.streams)
        scenario = ScenarioPlay(new, for: .apns, on: host.loop)
        unanswered.delay = scenario.settings.delay ?? configuration.delay
        chance = ConnectionChance(scenario.settings.rates ?? configuration.rates)
        for client in clients.values { client.fate = chance.fate() }
        scenario.begin { [unowned self] kind, begins in
            switch kind {
            case .blackHole: host.isFrozen = begins
            case .clock(let offset): clock.offset = begins ? offset : 0
            case .streams(let limit): setAdmittedStreams(begins ? limit : configuration.streams)
            }
        }
    }

    /// Sets the limit of connections that have presented a valid token.
    private func setAdmittedStreams(_ limit: UInt32) {
        streams = limit
        for client in clients.values where client.isAdmitted { change(client, to: limit) }
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

    // MARK: Requests

    func connectionOpened(_ connection: ServerConnection) {
        statistics.connections += 1
        clients[connection.number] = APNSClient(
            connection, streamLimit: configuration.streamsBeforeToken, fate: chance.fate())
        statistics.openConnections = clients.count
    }

    func requestArrived(_ stream: ServerStream, on connection: ServerConnection) {
        statistics.requests += 1
        clients[connection.number]?.newestStream = stream.number
        unanswered.add(stream, on: connection)
        host.wakeWaiters(seen: statistics.requests)
    }

    private func serve(_ stream: ServerStream, on connection: ServerConnection) {
        // What is behind a GOAWAY counts as never looked at, though it may have come before that was sent.
        guard let client = clients[connection.number], stream.number <= client.lastStream else { return }
        var finding = ProviderTokenCheck.Finding()
        let fields = APNSRequestFields(stream)
        let answer = judge(stream, fields, client, &finding)
        statistics.providerTokens = check.distinctTokens
        statistics.providerTokensInAnHour = check.mostInAnHour
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
        host.forget(connection)
        clients[connection.number] = nil
        statistics.openConnections = clients.count
    }

    private func judge(
        _ stream: ServerStream, _ fields: APNSRequestFields, _ client: APNSClient,
        _ finding: inout ProviderTokenCheck.Finding
    ) -> APNSAnswer {
        if let answer = APNSRequestRules.faultOfTarget(stream, fields) { return answer }
        guard let authorization = fields.authorization else {
            return .rejected(status: 403, reason: "MissingProviderToken")
        }
        let now = clock.seconds
        finding = check.examine(stream.headerBytes[authorization], now: now)
        let wasAdmitted = client.isAdmitted
        if let answer = client.fault(of: finding, at: now, configuration) { return answer }
        if !wasAdmitted { change(client, to: streams) }
        let rules = finding.keyID.flatMap { rulesOfKeys[$0] } ?? rules
        if let answer = rules.faultOfRequest(stream, fields, now: now) { return answer }
        if let verdict { return verdict.answer }
        if let answer = scripted(stream, fields, finding) ?? strike(stream, client) { return answer }
        guard let token = fields.deviceToken(in: stream) else { return .accepted }
        return misbehaviour.answer(to: stream.headerBytes[token]) ?? .accepted
    }

    private func scripted(
        _ stream: ServerStream, _ fields: APNSRequestFields, _ finding: ProviderTokenCheck.Finding
    ) -> APNSAnswer? {
        let rule = scenario.rule(
            for: ScenarioPlay.Request(
                token: fields.deviceToken(in: stream).map { stream.text($0) } ?? "",
                topic: fields.topic.map { stream.text($0) } ?? "",
                credentials: [finding.keyID ?? "", finding.teamID ?? ""]))
        guard let rule, case .apns(let answer) = rule.action else { return nil }
        return answer
    }

    /// What the rates bring upon a request and its connection.
    private func strike(_ stream: ServerStream, _ client: APNSClient) -> APNSAnswer? {
        switch chance.event(&client.fate) {
        case .nothing: return nil
        case .refused: return .unanswered(.refusedTwice)
        case .departure(let departure):
            if departure.isAnnounced { goAway(client, lastStream: .max) }
            // Not beyond what has arrived: nghttp2 looks at no new stream after it, and the client would wait for it.
            let last = min(stream.number + 2 * departure.streamsBeyond, client.newestStream)
            goAway(client, lastStream: max(0, last))
            return departure.streamsBeyond < 0 ? .unanswered(.goneAway) : nil
        }
    }

    private func throttle(_ client: APNSClient, after answer: APNSAnswer) {
        if let limit = chance.newLimit(&client.fate) { change(client, to: limit) }
        let throttles = configuration.throttlesAfterRejection || scenario.settings.throttles
        guard throttles, client.isAdmitted else { return }
        switch answer {
        case .accepted: change(client, to: streams)
        case .rejected: change(client, to: 1)
        default: break
        }
    }

    private func change(_ client: APNSClient, to limit: UInt32) {
        guard client.streamLimit != limit else { return }
        client.streamLimit = limit
        statistics.limitChanges += 1
        client.connection.setStreamLimit(limit)
    }

    // MARK: Answers

    private func carryOut(
        _ answer: APNSAnswer, _ stream: ServerStream, _ fields: APNSRequestFields, _ client: APNSClient
    ) {
        let connection = client.connection
        switch answer {
        case .accepted:
            accept(stream, fields, connection)
        case .rejected(let status, let reason):
            reject(stream, fields, connection, status, reason)
        case .page(let status):
            statistics.rejected += 1
            begin(stream, status: status)
            stream.addAnswerHeader("content-type") { $0.append(contentsOf: "text/html".utf8) }
            stream.answerBody.append(contentsOf: "<html><body>\(status)</body></html>".utf8)
            connection.answer(stream)
        case .empty(let status):
            statistics.rejected += 1
            begin(stream, status: status)
            connection.answer(stream)
        case .slow(let delay):
            let number = stream.number
            host.loop.arm(at: .now + delay) { [weak self, weak connection] in
                guard let self, let connection, connection.isOpen(stream, number: number) else { return }
                self.accept(stream, fields, connection)
            }
        case .acceptedThenGoneAway:
            goAway(client, lastStream: stream.number)
            accept(stream, fields, connection)
        case .unanswered(.goneAway):
            statistics.unanswered += 1
            // The rates have sent one already.
            if client.lastStream >= stream.number { goAway(client, lastStream: max(0, stream.number - 2)) }
        case .unanswered(let fault):
            statistics.unanswered += 1
            connection.leaveUnanswered(stream, fault, debugData: [])
        }
    }

    private func goAway(_ client: APNSClient, lastStream: Int32) {
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
        begin(stream, status: 200)
        addIdentifiers(stream, fields)
        connection.answer(stream)
    }

    private func reject(
        _ stream: ServerStream, _ fields: APNSRequestFields, _ connection: ServerConnection, _ status: Int,
        _ reason: String
    ) {
        statistics.rejected += 1
        begin(stream, status: status)
        addIdentifiers(stream, fields)
        stream.addAnswerHeader("content-type") { $0.append(contentsOf: "application/json".utf8) }
        stream.answerBody.append(contentsOf: "{\"reason\":\"\(reason)\"".utf8)
        if status == 410 { stream.answerBody.append(contentsOf: ",\"timestamp\":\(clock.milliseconds)".utf8) }
        stream.answerBody.append(UInt8(ascii: "}"))
        connection.answer(stream)
    }

    private func begin(_ stream: ServerStream, status: Int) {
        stream.answer(status: status)
        date.add(to: stream, at: clock)
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
