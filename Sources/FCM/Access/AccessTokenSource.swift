package import Credentials
package import EventLoop
package import HTTP2
package import OutboxCore

/// The access tokens of one Google service account, shared by all lanes that send with it.
///
/// The account's file is read again for each token, so a key is rotated by replacing the file; between two tokens no
/// key material is held. Everything happens on the loop: providers enter with `assumeIsolated`.
package actor AccessTokenSource {
    /// What access tokens are asked for.
    package static let scope = "https://www.googleapis.com/auth/firebase.messaging"
    /// Where the endpoint is normally: the host of `ServiceAccount.tokenURI`.
    package static let googleHost = "oauth2.googleapis.com"

    /// The project of the account; a file of another project is not taken later.
    package nonisolated let projectID: String
    private let loop: EventLoop
    private let file: KeyFile
    private let transport: HTTP2ClientConfiguration
    private let wallClock: @Sendable () -> Int64
    private let reportsFault: @Sendable (AccessFault) -> Void

    private var state = AccessState()
    private var listeners: [@Sendable (ProviderAccess) -> Void] = []
    private var told = ProviderAccess.awaited
    private var reportedFault: AccessFault?
    private var request: Request?
    private var requestsMade = 0
    private var timer: TimerID?
    private var hasBegun = false

    /// The request under way, over a connection of its own: there is one in half an hour, and none is worth an idle
    /// connection.
    private struct Request {
        let number: Int
        let client: HTTP2Client
        /// A token's life is counted from here.
        let askedAt: ContinuousClock.Instant
        /// Why no connection could be made.
        var trouble: String?
    }

    /// An assertion's `iat` lies this far back, in seconds, so that a clock which is a little fast is not refused.
    private static let backdating: Int64 = 10
    /// How long an assertion is good for, in seconds: the longest that Google takes.
    private static let assertionLife: Int64 = 3600

    /// A source that has asked for nothing yet. Throws when the account in `file` cannot be used.
    ///
    /// `transport` says where the token endpoint is and how it is reached. `reportsFault` hears once of each new reason
    /// why no token can be had, also while an older one still serves.
    package init(
        _ file: KeyFile, transport: HTTP2ClientConfiguration, on loop: EventLoop,
        wallClock: @escaping @Sendable () -> Int64 = { CredentialInstant.now.seconds },
        reportsFault: @escaping @Sendable (AccessFault) -> Void = { _ in }
    ) throws(ServiceAccountError) {
        let account = try ServiceAccount(file)
        projectID = account.projectID
        state.accountRead(account.fingerprint())
        self.file = file
        self.loop = loop
        self.wallClock = wallClock
        self.reportsFault = reportsFault
        var transport = transport
        transport.capturedHeaders = TokenEndpointAnswer.capturedHeaders
        transport.concurrency = 1
        transport.connectionsMax = 1
        self.transport = transport
    }

    package nonisolated var unownedExecutor: UnownedSerialExecutor {
        loop.asUnownedSerialExecutor()
    }

    /// Has `listener` called, on the loop and never from within a call to the source, when access comes or goes.
    package func listen(_ listener: @escaping @Sendable (ProviderAccess) -> Void) {
        listeners.append(listener)
    }

    /// The token that requests can carry now.
    package func token(at now: ContinuousClock.Instant) -> AccessToken? { state.token(at: now) }

    /// How access stands, after what is missing was asked for. A probe reads the file again first.
    package func seek(isProbe: Bool) -> ProviderAccess {
        if isProbe, state.token(at: .now) != nil {
            do throws(ServiceAccountError) {
                if state.accountRead(try readAccount().fingerprint()) { state.discardToken() }
            } catch {
                report(.file(error))
                return .refused(Self.outcome(of: .file(error)))
            }
        }
        state.seek(at: .now)
        hasBegun = true
        advance()
        return state.access(at: .now)
    }

    /// FCM refused the token of this number with `refusal`.
    package func replace(_ number: Int, because refusal: Outcome) -> TokenReplacement {
        defer { advance() }
        return state.replace(number, because: refusal, at: .now)
    }

    /// Reads the file again, and asks for a token at once when it holds another account or key; the token in use serves
    /// until that is there. A refusal of the request under way leads to another request. The number of the account; nil
    /// when the file cannot be used, which was told, and the old account stays in use.
    package func reload() -> Int? {
        do throws(ServiceAccountError) {
            state.accountRead(try readAccount().fingerprint())
        } catch {
            reportedFault = nil
            report(.file(error))
            return nil
        }
        state.lookedAfter()
        advance()
        return state.accountNumber
    }

    /// The number of the account in use; it grows with each other account or key.
    package var accountNumber: Int { state.accountNumber }

    // MARK: Requests

    /// Does what is due, tells what has changed, and comes back when the next thing is due.
    private func advance() {
        guard hasBegun else { return }
        if state.wantsToken(at: .now) { ask() }
        if let timer { loop.cancel(timer) }
        let now = ContinuousClock.now
        let isNews = state.access(at: now) != told
        // Told in a turn of its own: the caller may be the one who is to hear it.
        timer = (isNews ? now : state.nextEvent(after: now)).map { due in
            loop.arm(at: due) { [weak self] in self?.assumeIsolated { $0.wake() } }
        }
    }

    private func wake() {
        timer = nil
        let access = state.access(at: .now)
        if access != told {
            told = access
            for listener in listeners { listener(access) }
        }
        advance()
    }

    private func ask() {
        do throws(AccessFault) {
            let assertion = try makeAssertion()
            state.asked()
            send(assertion)
        } catch {
            state.asked()
            refuse(error)
        }
    }

    private func makeAssertion() throws(AccessFault) -> String {
        let account: ServiceAccount
        do throws(ServiceAccountError) {
            account = try readAccount()
        } catch {
            throw .file(error)
        }
        state.accountRead(account.fingerprint())
        let issuedAt = wallClock() - Self.backdating
        guard let assertion = account.assertion(scope: Self.scope, issuedAt: issuedAt, life: Self.assertionLife)
        else { throw .file(ServiceAccountError(path: file.path, .signing)) }
        return assertion
    }

    private func readAccount() throws(ServiceAccountError) -> ServiceAccount {
        let account = try ServiceAccount(file)
        guard account.projectID == projectID else { throw ServiceAccountError(path: file.path, .otherProject) }
        return account
    }

    private func send(_ assertion: String) {
        requestsMade += 1
        let number = requestsMade
        let client = HTTP2Client(
            transport, on: loop,
            answered: { [weak self] batch in self?.assumeIsolated { $0.answered(number, batch) } },
            stateChanged: { [weak self] state in self?.assumeIsolated { $0.connectionChanged(number, state) } })
        request = Request(number: number, client: client, askedAt: .now)
        var batch = HTTPRequestBatch()
        let headers = batch.addSharedHeaders([
            HTTPHeader("content-type", "application/x-www-form-urlencoded"), HTTPHeader("accept", "application/json"),
        ])
        let path = batch.append { $0.append(contentsOf: "/token".utf8) }
        // Nothing in an assertion needs an escape.
        let body = batch.append { bytes in
            bytes.append(contentsOf: "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer".utf8)
            bytes.append(contentsOf: "&assertion=".utf8)
            bytes.append(contentsOf: assertion.utf8)
        }
        batch.add(tag: 0, shared: headers, path: path, fields: [], body: body)
        client.assumeIsolated { [batch] in $0.submit(batch) }
    }

    private func connectionChanged(_ number: Int, _ change: HTTP2ClientState) {
        guard request?.number == number, case .down(let error, _) = change else { return }
        request?.trouble = error.description
    }

    private func answered(_ number: Int, _ batch: HTTPResultBatch) {
        guard let request, request.number == number, let result = batch.results.first else { return }
        self.request = nil
        Task(executorPreference: loop) { await request.client.close(within: .zero) }
        switch result.outcome {
        case .success(let response):
            take(TokenEndpointAnswer(response, text: batch.bytes, now: wallClock()), of: request)
        case .failure(let fault):
            let reason = request.trouble ?? "the token endpoint: \(fault.reason.rawValue)"
            take(.unavailable(reason: reason, wait: .zero), of: request)
        }
        advance()
    }

    private func take(_ answer: TokenEndpointAnswer, of request: Request) {
        switch answer {
        case .granted(let authorization, let life):
            state.granted(authorization: authorization, life: life, askedAt: request.askedAt)
            reportedFault = nil
        case .refused(let refusal):
            refuse(.refused(refusal))
        case .unavailable(let reason, let wait):
            state.failed(reason: reason, wait: wait, jitter: .random(in: 0..<1), at: .now)
            report(.unavailable(reason))
        }
    }

    private func refuse(_ fault: AccessFault) {
        state.refused(Self.outcome(of: fault), at: .now)
        report(fault)
    }

    private func report(_ fault: AccessFault) {
        guard fault != reportedFault else { return }
        reportedFault = fault
        reportsFault(fault)
    }

    private static func outcome(of fault: AccessFault) -> Outcome {
        Outcome(.misconfigured, scope: .lane, status: fault.status, reason: fault.word)
    }
}
