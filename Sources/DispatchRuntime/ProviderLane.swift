import EventLoop
import HTTP2
import OutboxCore

#if CRASH_POINTS
    import CrashPoints
#endif

/// A lane at work: a provider's requests over a transport of its own, so that a slow or rejected lane never slows
/// another.
///
/// Confined to the dispatcher. Its memory (content, batch) serves one send after the other.
final class ProviderLane {
    let description: LaneDescription
    private var provider: any PushProvider<HTTPRequestBatch, HTTPResponse>
    private let client: HTTP2Client
    /// Whether requests can be authorised, as last heard; it was not asked for yet at the beginning.
    var access = ProviderAccess.awaited
    /// Kinds that the provider cannot take; none, as a rule.
    private var refusedKinds: Set<KindNumber> = []

    /// `accessChanged` is called on the loop when access comes or goes by itself.
    init(
        _ configuration: LaneConfiguration, client: HTTP2Client,
        accessChanged: @escaping @Sendable (ProviderAccess) -> Void
    ) {
        description = configuration.description
        provider = configuration.provider(accessChanged)
        self.client = client
    }

    /// Whether there is a token to authorise requests with.
    var hasAccess: Bool {
        if case .granted = access { true } else { false }
    }

    /// How many more requests the transport takes now; none without access.
    var capacity: Int { hasAccess ? client.assumeIsolated { $0.capacity } : 0 }

    /// Asks for what it takes to authorise requests.
    func authorize(wallClock: Int64, isProbe: Bool) -> ProviderAccess {
        provider.authorize(now: wallClock, isProbe: isProbe)
    }

    /// What did not become a request.
    struct SendReport {
        /// Targets that the encoder refused, with what it says of them.
        var refusals: [(tag: AttemptTag, outcome: Outcome)] = []
        /// Targets that go back, and why: nothing is wrong with them.
        var unsent: [(tag: AttemptTag, fault: SendFault)] = []
        /// News of the lane's access: there is none any more, or by another credential.
        var access: ProviderAccess?
    }

    /// This instant, by the local clock and by the database's.
    typealias Moment = (instant: ContinuousClock.Instant, time: Timestamp)

    /// Sends targets of one lease and answers what did not become a request. What has to wait for a stream is not sent
    /// once its check has grown too old or its deadline has passed.
    func send(
        _ targets: [Int32], slot: Int, of leased: LeasedBatch, kinds: [KindNumber: Kind], route: Route,
        now: Moment, wallClock: Int64, isProbe: Bool
    ) -> SendReport {
        var report = SendReport()
        let batch = leased.claimed
        let access = authorize(wallClock: wallClock, isProbe: isProbe)
        if access != .granted { report.access = access }
        guard case .granted(let byAnotherCredential) = access else {
            report.unsent = targets.map { (AttemptTag(slot: slot, target: Int($0)), Self.notReady) }
            return report
        }
        // Apple binds a connection to the key of its first request.
        if byAnotherCredential { reconnect() }
        let tokenMark = provider.tokenMark
        var requests = HTTPRequestBatch()
        requests.reserve(requests: targets.count, bytes: targets.count * 512)
        var begun: Begun?
        for target in targets {
            let tag = AttemptTag(slot: slot, target: Int(target), tokenMark: tokenMark)
            let dispatch = leased.dispatch(ofTarget: Int(target))
            if begun?.notification != dispatch.notification {
                let life = dispatch.expiresAt - now.time
                requests.sendBy = min(leased.takenHoldUntil, now.instant + life)
                begun = begin(dispatch, of: batch, kinds: kinds, route: route, now: now.time, into: &requests)
            }
            if let fault = begun?.fault {
                report.unsent.append((tag, fault))
                continue
            }
            let claimed = batch.targets[Int(target)]
            let refusal =
                begun?.refusal ?? provider.add(claimed, tag: tag.number, text: batch.text, into: &requests)
            if let refusal { report.refusals.append((tag, refusal)) }
        }
        if !requests.requests.isEmpty { submit(requests) }
        return report
    }

    /// The notification whose targets are being encoded.
    private struct Begun {
        let notification: Identifier
        var refusal: Outcome?
        /// Its kind is not in the catalog as this worker has it, or cannot be read: it waits.
        var fault: SendFault?
    }

    private static let notReady = SendFault.notSent(reason: "not_ready")

    /// Has the provider look at a catalog that was just read; answers what it cannot take and did not before.
    func judge(_ kinds: [Kind]) -> [(kind: Kind, fault: String)] {
        let faults = kinds.filter { $0.unreadable == nil }
            .compactMap { kind in provider.fault(of: kind).map { (kind: kind, fault: $0) } }
        defer { refusedKinds = Set(faults.map(\.kind.number)) }
        return faults.filter { !refusedKinds.contains($0.kind.number) }
    }

    private func submit(_ requests: HTTPRequestBatch) {
        client.assumeIsolated { $0.submit(requests) }
        #if CRASH_POINTS
            CrashPoint.requestHandedOver.reached()
        #endif
    }

    private func begin(
        _ dispatch: ClaimedDispatch, of batch: ClaimedBatch, kinds: [KindNumber: Kind], route: Route, now: Timestamp,
        into requests: inout HTTPRequestBatch
    ) -> Begun {
        guard let kind = kinds[dispatch.kind] else {
            return Begun(notification: dispatch.notification, fault: Self.notReady)
        }
        if kind.unreadable != nil { return Begun(notification: dispatch.notification, fault: .kindUnreadable) }
        if !refusedKinds.isEmpty, refusedKinds.contains(kind.number) {
            let refusal = Outcome(.rejected, reason: "kind_refused")
            return Begun(notification: dispatch.notification, refusal: refusal)
        }
        let push = OutgoingPush(dispatch: dispatch, kind: kind, route: route, now: now)
        let refusal = provider.begin(push, text: batch.text, into: &requests)
        return Begun(notification: dispatch.notification, refusal: refusal)
    }

    /// Reads an answer.
    func decode(_ response: HTTPResponse, _ text: [UInt8]) -> Outcome {
        provider.decode(response, text: text)
    }

    /// Makes or asks for an access token in place of the one that `mark` names.
    func replaceToken(_ mark: UInt8, because refusal: Outcome, wallClock: Int64) -> TokenReplacement {
        provider.replaceToken(mark, because: refusal, now: wallClock)
    }

    /// Reads the credential again; whether it is another, or nil when it cannot be used and the old one stays.
    func reloadCredential(wallClock: Int64) -> Bool? {
        provider.reloadCredential(now: wallClock)
    }

    /// Drops the connections in favour of new ones, without losing a request.
    func reconnect() {
        client.assumeIsolated { $0.replaceConnections() }
    }

    /// The same, and gives back what waits for a stream: it carries a token that is refused.
    func restart() {
        client.assumeIsolated { client in
            client.cancelQueued()
            client.replaceConnections()
        }
    }

    /// Waits for open requests, then resets what is left.
    func close(within limit: Duration) async {
        await client.close(within: limit)
    }
}
