import CNGHTTP2
import EventLoop

/// The stand-in itself, confined to its loop: takes connections, judges requests, answers, keeps the record.
final class FCMServer: RequestHandler {
    let configuration: FakeFCMConfiguration
    var clock = WallClock()
    /// What the next good requests are answered, and how many of them.
    var wish: (answer: FCMAnswer, times: Int)?
    private(set) var statistics = FakeFCMStatistics()
    private(set) var seen: [SeenRequest] = []
    let host: ServiceHost
    private let log: RequestLog?
    private let rules: FCMRequestRules
    private var misbehaviour: FCMMisbehaviour
    private var identifiers = IdentifierSource()
    private var clients: [Int: FCMClient] = [:]
    private var chance: ConnectionChance
    private var streams: UInt32
    private(set) lazy var unanswered = UnansweredRequests(delay: configuration.delay, on: host.loop) { [unowned self] in
        serve($0, on: $1)
    }
    private lazy var scenario = ScenarioPlay(Scenario(), for: .fcm, on: host.loop)

    /// Debug data of a GOAWAY that Google's front end sends to an idle or old connection.
    private static let farewell = Array("session_timed_out".utf8)
    /// And to one with too many streams, seen at firebase-admin-node#2943 with PROTOCOL_ERROR.
    private static let tooManyStreams = Array("exceeded_max_concurrent_streams".utf8)

    init(_ configuration: FakeFCMConfiguration, on loop: EventLoop) throws(FakeServerError) {
        self.configuration = configuration
        host = try ServiceHost(
            configuration.identity,
            settings: ServerSettings(concurrentStreams: configuration.streams, headerListSize: 65_536), on: loop)
        misbehaviour = FCMMisbehaviour(slowness: configuration.slowness)
        chance = ConnectionChance(configuration.rates)
        streams = configuration.streams
        rules = FCMRequestRules(isStrict: configuration.isStrict)
        log = try RequestLog(configuration.log)
    }

    func start() throws(FakeServerError) -> UInt16 {
        try host.start(host: configuration.host, port: configuration.port, handler: self)
    }

    func stop() {
        scenario.end()
        host.stop()
        log?.flush()
    }

    /// Sends GOAWAY with `lastStream` and `debugData` on all connections.
    func goAway(lastStream: Int32, debugData: [UInt8]) {
        for client in clients.values { goAway(client, lastStream: lastStream, debugData) }
    }

    /// Announces a new stream limit on all connections; one stream more ends a connection.
    func setStreamLimit(_ limit: UInt32) {
        streams = limit
        for client in clients.values { change(client, to: limit) }
    }

    /// Plays `new` from now on, instead of what was played before.
    func play(_ new: Scenario) {
        scenario.end()
        host.isFrozen = false
        clock.offset = 0
        setStreamLimit(configuration.streams)
        scenario = ScenarioPlay(new, for: .fcm, on: host.loop)
        unanswered.delay = scenario.settings.delay ?? configuration.delay
        chance = ConnectionChance(scenario.settings.rates ?? configuration.rates)
        for client in clients.values { client.fate = chance.fate() }
        scenario.begin { [unowned self] kind, begins in
            switch kind {
            case .blackHole: host.isFrozen = begins
            case .clock(let offset): clock.offset = begins ? offset : 0
            case .streams(let limit): setStreamLimit(begins ? limit : configuration.streams)
            }
        }
    }

    // MARK: Requests

    func connectionOpened(_ connection: ServerConnection) {
        statistics.connections += 1
        let client = FCMClient(connection, streamLimit: configuration.streams, fate: chance.fate())
        clients[connection.number] = client
        statistics.openConnections = clients.count
        change(client, to: streams)
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
        let request = FCMRequest(stream)
        var grant: FakeAccessTokens.Grant?
        let answer = judge(request, stream, client, &grant)
        let record = RequestRecord(
            service: "fcm", connection: connection.number, stream: stream, method: request.method, path: request.path,
            keyID: grant?.keyID, issuedAt: grant?.issuedAt, status: answer.status, note: answer.note,
            bearerIsSigned: false)
        if let log {
            let now = clock.microseconds
            log.line { record.append(to: &$0, microseconds: now) }
        }
        if seen.count < configuration.keptRequests { seen.append(record.seen(token: request.target ?? "")) }
        carryOut(answer, stream, request, client)
        if let limit = chance.newLimit(&client.fate) { change(client, to: limit) }
    }

    func connectionWillSend() {
        log?.flush()
    }

    func clientBrokeProtocol(on connection: ServerConnection) {
        statistics.protocolErrors += 1
        guard let client = clients[connection.number], connection.openStreams >= Int(client.streamLimit) else { return }
        connection.goAway(
            lastStream: connection.lastStream, code: UInt32(NGHTTP2_PROTOCOL_ERROR.rawValue),
            debugData: Self.tooManyStreams)
    }

    func connectionClosed(_ connection: ServerConnection) {
        host.forget(connection)
        clients[connection.number] = nil
        statistics.openConnections = clients.count
    }

    private func judge(
        _ request: FCMRequest, _ stream: ServerStream, _ client: FCMClient, _ grant: inout FakeAccessTokens.Grant?
    ) -> FCMAnswer {
        guard let project = request.project, request.isPost else { return .page(status: 404) }
        guard let bearer = request.bearer else { return .fault(.noCredential) }
        if let tokens = configuration.accessTokens {
            grant = tokens.grant(of: bearer)
            guard let grant, grant.expiry > clock.seconds else { return .fault(.badCredential) }
            if !configuration.projects.isEmpty, !configuration.projects.contains(project) {
                return .fault(.notFound)
            }
            guard grant.account.projectID == project else { return .fault(.permissionDenied(project: project)) }
        } else if !configuration.projects.isEmpty, !configuration.projects.contains(project) {
            return .fault(.notFound)
        }
        if let fault = rules.fault(of: request, in: stream) { return .fault(fault) }
        if let answer = takeWish() ?? scripted(request, project, grant) ?? strike(stream, client) { return answer }
        guard let token = request.target else { return .accepted }
        return misbehaviour.answer(to: token, project: project) ?? .accepted
    }

    private func scripted(
        _ request: FCMRequest, _ project: String, _ grant: FakeAccessTokens.Grant?
    ) -> FCMAnswer? {
        let rule = scenario.rule(
            for: ScenarioPlay.Request(
                token: request.target ?? "", credentials: [project, grant?.account.clientEmail ?? ""]))
        switch rule?.action {
        case .fcm(let answer): return answer
        case .fcmNamed(let name):
            return FCMMisbehaviour.named(name, project: project, retryAfter: rule?.retryAfter)
        default: return nil
        }
    }

    /// What the rates bring upon a request and its connection.
    private func strike(_ stream: ServerStream, _ client: FCMClient) -> FCMAnswer? {
        switch chance.event(&client.fate) {
        case .nothing: return nil
        case .refused: return .unanswered(.refused)
        case .departure(let departure):
            if departure.isAnnounced { goAway(client, lastStream: .max, Self.farewell) }
            // Not beyond what has arrived: nghttp2 looks at no new stream after it, and the client would wait for it.
            let last = min(stream.number + 2 * departure.streamsBeyond, client.newestStream)
            goAway(client, lastStream: max(0, last), Self.farewell)
            return departure.streamsBeyond < 0 ? .unanswered(.goneAway) : nil
        }
    }

    private func change(_ client: FCMClient, to limit: UInt32) {
        guard client.streamLimit != limit else { return }
        client.streamLimit = limit
        client.connection.setStreamLimit(limit)
    }

    private func goAway(_ client: FCMClient, lastStream: Int32, _ debugData: [UInt8]) {
        statistics.goAways += 1
        client.lastStream = min(client.lastStream, lastStream)
        client.connection.goAway(
            lastStream: lastStream, code: UInt32(NGHTTP2_NO_ERROR.rawValue), debugData: debugData)
    }

    private func takeWish() -> FCMAnswer? {
        guard let (answer, times) = wish else { return nil }
        wish = times > 1 ? (answer, times == Int.max ? times : times - 1) : nil
        return answer
    }

    // MARK: Answers

    private func carryOut(
        _ answer: FCMAnswer, _ stream: ServerStream, _ request: FCMRequest, _ client: FCMClient
    ) {
        let connection = client.connection
        switch answer {
        case .accepted: accept(stream, request, connection)
        case .slow(let delay):
            let number = stream.number
            host.loop.arm(at: .now + delay) { [weak self, weak connection] in
                guard let self, let connection, connection.isOpen(stream, number: number) else { return }
                self.accept(stream, request, connection)
            }
        case .acceptedThenGoneAway:
            goAway(client, lastStream: stream.number, Self.farewell)
            accept(stream, request, connection)
        case .fault(let fault): reject(stream, fault, connection)
        case .page(let status):
            statistics.rejected += 1
            GoogleAnswer.page(stream, status: status, clock)
            connection.answer(stream)
        case .empty(let status):
            statistics.rejected += 1
            GoogleAnswer.begin(stream, status: status, type: nil, clock)
            connection.answer(stream)
        case .unanswered(.goneAway):
            statistics.unanswered += 1
            // The rates have sent one already.
            if client.lastStream >= stream.number {
                goAway(client, lastStream: max(0, stream.number - 2), Self.farewell)
            }
        case .unanswered(let fault):
            statistics.unanswered += 1
            connection.leaveUnanswered(stream, fault, debugData: Self.farewell)
        }
    }

    private func accept(_ stream: ServerStream, _ request: FCMRequest, _ connection: ServerConnection) {
        statistics.accepted += 1
        GoogleAnswer.begin(stream, status: 200, type: "application/json; charset=UTF-8", clock)
        let project = request.project ?? ""
        stream.answerBody += "{\n  \"name\": \"projects/\(project)/messages/".utf8
        if request.isValidation {
            stream.answerBody += "fake_message_id".utf8
        } else {
            stream.answerBody += "0:\(clock.microseconds)%".utf8
            identifiers.append(upperCase: false, to: &stream.answerBody)
        }
        stream.answerBody += "\"\n}\n".utf8
        connection.answer(stream)
    }

    private func reject(_ stream: ServerStream, _ fault: FCMFault, _ connection: ServerConnection) {
        statistics.rejected += 1
        GoogleAnswer.begin(
            stream, status: fault.httpStatus, type: "application/json; charset=UTF-8", clock,
            retryAfter: fault.retryAfter)
        if fault.httpStatus == 401, fault.errorCode == nil {
            stream.addAnswerHeader("www-authenticate") {
                $0 += "Bearer realm=\"https://accounts.google.com/\", error=\"invalid_token\"".utf8
            }
        }
        stream.answerBody += fault.body.utf8
        connection.answer(stream)
    }
}
