import Credentials
import EventLoop

/// The stand-in itself, confined to its loop: takes connections, judges assertions, issues access tokens.
final class TokenEndpointServer: RequestHandler {
    /// Methods and paths, found in a request's headers.
    private struct Target {
        var method: Range<Int>?
        var path: Range<Int>?
        var contentType: Range<Int>?

        init(_ stream: ServerStream) {
            for header in stream.headers {
                if stream.holds(":method", at: header.name) { method = header.value }
                if stream.holds(":path", at: header.name) { path = header.value }
                if stream.holds("content-type", at: header.name) { contentType = header.value }
            }
        }
    }

    var configuration: FakeTokenEndpointConfiguration
    var clock = WallClock()
    /// What the next good requests are answered, and how many of them.
    var misbehaviour: (answer: TokenEndpointAnswer, times: Int)?
    private(set) var statistics = FakeTokenEndpointStatistics()
    private(set) var seen: [SeenRequest] = []
    let host: ServiceHost
    private let log: RequestLog?
    private var check: AssertionCheck
    private var identifiers = IdentifierSource()
    private lazy var scenario = ScenarioPlay(Scenario(), for: .token, on: host.loop)
    private var assertions: Set<[UInt8]> = []

    private static let grantType = "urn:ietf:params:oauth:grant-type:jwt-bearer"
    /// Distinct assertions counted; a client signs one an hour.
    private static let assertionLimit = 100_000

    init(_ configuration: FakeTokenEndpointConfiguration, on loop: EventLoop) throws(FakeServerError) {
        self.configuration = configuration
        host = try ServiceHost(
            configuration.identity, settings: ServerSettings(concurrentStreams: 100, headerListSize: 65_536), on: loop)
        check = try AssertionCheck(accounts: configuration.accounts, audiences: configuration.audiences)
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

    /// Plays `new` from now on, instead of what was played before.
    func play(_ new: Scenario) {
        scenario.end()
        host.isFrozen = false
        clock.offset = 0
        scenario = ScenarioPlay(new, for: .token, on: host.loop)
        scenario.begin { [unowned self] kind, begins in
            switch kind {
            case .blackHole: host.isFrozen = begins
            case .clock(let offset): clock.offset = begins ? offset : 0
            case .streams: break
            }
        }
    }

    func setAccounts(_ accounts: [FakeServiceAccount]) throws(FakeServerError) {
        check = try AssertionCheck(accounts: accounts, audiences: configuration.audiences)
    }

    // MARK: Requests

    func connectionOpened(_ connection: ServerConnection) {
        statistics.connections += 1
        statistics.openConnections = host.connections.count
    }

    func requestArrived(_ stream: ServerStream, on connection: ServerConnection) {
        statistics.requests += 1
        let target = Target(stream)
        var finding = AssertionCheck.Finding()
        let answer = judge(stream, target, &finding)
        let record = RequestRecord(
            service: "token", connection: connection.number, stream: stream, method: target.method, path: target.path,
            keyID: finding.keyID, issuedAt: finding.issuedAt, status: answer.status, note: answer.note,
            showsBody: false, bearerIsSigned: false)
        if let log {
            let now = clock.microseconds
            log.line { record.append(to: &$0, microseconds: now) }
        }
        if seen.count < configuration.keptRequests { seen.append(record.seen(token: "")) }
        carryOut(answer, stream, finding, connection)
        host.wakeWaiters(seen: statistics.requests)
    }

    func connectionWillSend() {
        log?.flush()
    }

    func clientBrokeProtocol(on connection: ServerConnection) {}

    func connectionClosed(_ connection: ServerConnection) {
        host.forget(connection)
        statistics.openConnections = host.connections.count
    }

    private func judge(
        _ stream: ServerStream, _ target: Target, _ finding: inout AssertionCheck.Finding
    ) -> TokenEndpointAnswer {
        guard let path = target.path, stream.holds("/token", at: path), let method = target.method,
            stream.holds("POST", at: method)
        else { return .page(status: 404) }
        guard let type = target.contentType, stream.text(type).hasPrefix("application/x-www-form-urlencoded"),
            let form = FormBody(stream.body)
        else { return .refused(error: "invalid_request", description: "Bad Request") }
        guard let grantType = form["grant_type"] else {
            return .refused(error: "invalid_request", description: "Required parameter is missing: grant_type")
        }
        guard grantType == Self.grantType else {
            return .refused(error: "unsupported_grant_type", description: "Invalid grant_type: \(grantType)")
        }
        guard let assertion = form["assertion"] else {
            return .refused(error: "invalid_request", description: "Required parameter is missing: assertion")
        }
        finding = check.examine(assertion, now: clock.seconds)
        if finding.account != nil, assertions.count < Self.assertionLimit {
            var digest: [UInt8] = []
            SHA256.appendBase64URL(of: assertion.utf8, to: &digest)
            assertions.insert(digest)
            statistics.assertions = assertions.count
        }
        return finding.fault ?? takeMisbehaviour() ?? scripted(finding) ?? .granted
    }

    private func scripted(_ finding: AssertionCheck.Finding) -> TokenEndpointAnswer? {
        let rule = scenario.rule(
            for: ScenarioPlay.Request(credentials: [finding.account?.clientEmail ?? "", finding.keyID ?? ""]))
        guard let rule, case .token(let answer) = rule.action else { return nil }
        return answer == .tooManyRequests(nil) ? .tooManyRequests(rule.retryAfter) : answer
    }

    private func takeMisbehaviour() -> TokenEndpointAnswer? {
        guard let (answer, times) = misbehaviour else { return nil }
        misbehaviour = times > 1 ? (answer, times == Int.max ? times : times - 1) : nil
        return answer
    }

    // MARK: Answers

    private func carryOut(
        _ answer: TokenEndpointAnswer, _ stream: ServerStream, _ finding: AssertionCheck.Finding,
        _ connection: ServerConnection
    ) {
        switch answer {
        case .granted: grant(finding, stream, connection)
        case .slow(let delay):
            let number = stream.number
            host.loop.arm(at: .now + delay) { [weak self, weak connection] in
                guard let self, let connection, connection.isOpen(stream, number: number) else { return }
                self.grant(finding, stream, connection)
            }
        case .unanswered(let fault):
            statistics.unanswered += 1
            connection.leaveUnanswered(stream, fault, debugData: Array("session_timed_out".utf8))
        default:
            statistics.refused += 1
            refuse(answer, stream, connection)
        }
    }

    private func grant(_ finding: AssertionCheck.Finding, _ stream: ServerStream, _ connection: ServerConnection) {
        guard let account = finding.account else { return }
        statistics.granted += 1
        var name: [UInt8] = []
        identifiers.append(upperCase: false, to: &name)
        let token = "ya29.c.fake-" + String(decoding: name, as: UTF8.self)
        let lifetime = scenario.settings.lifetime ?? configuration.lifetime
        configuration.accessTokens.record(
            token,
            FakeAccessTokens.Grant(
                account: account, expiry: clock.seconds + lifetime, keyID: finding.keyID, issuedAt: finding.issuedAt))
        let expiry =
            configuration.writesExpiryAsString || scenario.settings.writesExpiryAsString
            ? "\"\(lifetime)\"" : "\(lifetime)"
        GoogleAnswer.begin(stream, status: 200, type: "application/json; charset=UTF-8", clock)
        stream.answerBody += "{\"access_token\":\"\(token)\",\"expires_in\":\(expiry),\"token_type\":\"Bearer\"}".utf8
        connection.answer(stream)
    }

    private func refuse(_ answer: TokenEndpointAnswer, _ stream: ServerStream, _ connection: ServerConnection) {
        switch answer {
        case .page(let status): GoogleAnswer.page(stream, status: status, clock)
        case .empty(let status): GoogleAnswer.begin(stream, status: status, type: nil, clock)
        case .cutOff:
            GoogleAnswer.begin(stream, status: 200, type: "application/json; charset=UTF-8", clock)
            stream.answerBody += "{\"access_token\":\"ya29.c.fake-".utf8
        default:
            var retryAfter: RetryAfter?
            if case .tooManyRequests(let after) = answer { retryAfter = after }
            GoogleAnswer.begin(
                stream, status: answer.status, type: "application/json; charset=utf-8", clock, retryAfter: retryAfter)
            if let (error, description) = answer.complaint {
                let text = JSONText.quoted(description)
                stream.answerBody += "{\n  \"error\": \"\(error)\",\n  \"error_description\": \(text)\n}".utf8
            }
        }
        connection.answer(stream)
    }
}
