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
    private var misbehaviour = FCMMisbehaviour()
    private var identifiers = IdentifierSource()

    /// Debug data of a GOAWAY that Google's front end sends to an idle or old connection.
    private static let farewell = Array("session_timed_out".utf8)
    /// And to one with too many streams, seen at firebase-admin-node#2943 with PROTOCOL_ERROR.
    private static let tooManyStreams = Array("exceeded_max_concurrent_streams".utf8)

    init(_ configuration: FakeFCMConfiguration, on loop: EventLoop) throws(FakeServerError) {
        self.configuration = configuration
        host = try ServiceHost(
            configuration.identity,
            settings: ServerSettings(concurrentStreams: configuration.streams, headerListSize: 65_536), on: loop)
        rules = FCMRequestRules(isStrict: configuration.isStrict)
        log = try RequestLog(configuration.log)
    }

    func start() throws(FakeServerError) -> UInt16 {
        try host.start(host: configuration.host, port: configuration.port, handler: self)
    }

    func stop() {
        host.stop()
        log?.flush()
    }

    func goAway(lastStream: Int32, debugData: [UInt8]) {
        for connection in host.connections.values {
            connection.goAway(
                lastStream: lastStream, code: UInt32(NGHTTP2_NO_ERROR.rawValue), debugData: debugData)
        }
    }

    // MARK: Requests

    func connectionOpened(_ connection: ServerConnection) {
        statistics.connections += 1
        statistics.openConnections = host.connections.count
    }

    func requestArrived(_ stream: ServerStream, on connection: ServerConnection) {
        statistics.requests += 1
        let request = FCMRequest(stream)
        var grant: FakeAccessTokens.Grant?
        let answer = judge(request, stream, &grant)
        let record = RequestRecord(
            service: "fcm", connection: connection.number, stream: stream, method: request.method, path: request.path,
            keyID: grant?.keyID, issuedAt: grant?.issuedAt, status: answer.status, note: answer.note,
            bearerIsSigned: false)
        if let log {
            let now = clock.microseconds
            log.line { record.append(to: &$0, microseconds: now) }
        }
        if seen.count < configuration.keptRequests { seen.append(record.seen(token: request.target ?? "")) }
        carryOut(answer, stream, request, connection)
        host.wakeWaiters(seen: statistics.requests)
    }

    func connectionWillSend() {
        log?.flush()
    }

    func clientBrokeProtocol(on connection: ServerConnection) {
        statistics.protocolErrors += 1
        guard connection.openStreams >= Int(configuration.streams) else { return }
        connection.goAway(
            lastStream: connection.lastStream, code: UInt32(NGHTTP2_PROTOCOL_ERROR.rawValue),
            debugData: Self.tooManyStreams)
    }

    func connectionClosed(_ connection: ServerConnection) {
        host.forget(connection)
        statistics.openConnections = host.connections.count
    }

    private func judge(
        _ request: FCMRequest, _ stream: ServerStream, _ grant: inout FakeAccessTokens.Grant?
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
        if let answer = takeWish() { return answer }
        guard let token = request.target else { return .accepted }
        return misbehaviour.answer(to: token, project: project) ?? .accepted
    }

    private func takeWish() -> FCMAnswer? {
        guard let (answer, times) = wish else { return nil }
        wish = times > 1 ? (answer, times == Int.max ? times : times - 1) : nil
        return answer
    }

    // MARK: Answers

    private func carryOut(
        _ answer: FCMAnswer, _ stream: ServerStream, _ request: FCMRequest, _ connection: ServerConnection
    ) {
        switch answer {
        case .accepted: accept(stream, request, connection)
        case .slow:
            let number = stream.number
            host.loop.arm(at: .now + configuration.slowness) { [weak self, weak connection] in
                guard let self, let connection, connection.isOpen(stream, number: number) else { return }
                self.accept(stream, request, connection)
            }
        case .acceptedThenGoneAway:
            connection.goAway(
                lastStream: stream.number, code: UInt32(NGHTTP2_NO_ERROR.rawValue), debugData: Self.farewell)
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
