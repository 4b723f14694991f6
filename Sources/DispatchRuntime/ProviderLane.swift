import EventLoop
import HTTP2
import OutboxCore

/// A lane at work: a provider's requests over a transport of its own, so that a slow or rejected lane never slows
/// another.
///
/// Confined to the dispatcher. Its memory (content, batch) serves one send after the other.
final class ProviderLane {
    let description: LaneDescription
    private var provider: any PushProvider<HTTPRequestBatch, HTTPResponse>
    private let client: HTTP2Client

    init(_ configuration: LaneConfiguration, client: HTTP2Client) {
        description = configuration.description
        provider = configuration.provider()
        self.client = client
    }

    /// How many more requests the transport takes now.
    var capacity: Int { client.assumeIsolated { $0.capacity } }

    /// What did not become a request.
    struct SendReport {
        /// Targets that the encoder refused, with what it says of them.
        var refusals: [(tag: AttemptTag, outcome: Outcome)] = []
        /// Targets that go back: nothing is wrong with them.
        var unsent: [AttemptTag] = []
        /// Why the lane cannot send at all.
        var laneFault: Outcome?
    }

    /// Sends targets of one lease and answers what did not become a request.
    func send(
        _ targets: [Int32], slot: Int, of leased: LeasedBatch, kinds: [KindNumber: Kind], route: Route,
        now: Timestamp, wallClock: Int64, isProbe: Bool
    ) -> SendReport {
        var report = SendReport()
        let batch = leased.claimed
        if let fault = provider.authorize(now: wallClock, isProbe: isProbe) {
            report.laneFault = fault
            report.unsent = targets.map { AttemptTag(slot: slot, target: Int($0)) }
            return report
        }
        var requests = HTTPRequestBatch()
        requests.reserve(requests: targets.count, bytes: targets.count * 512)
        var begun: Begun?
        for target in targets {
            let tag = AttemptTag(slot: slot, target: Int(target))
            let dispatch = leased.dispatch(ofTarget: Int(target))
            if begun?.notification != dispatch.notification {
                begun = begin(dispatch, of: batch, kinds: kinds, route: route, now: now, into: &requests)
            }
            if begun?.isUnknown == true {
                report.unsent.append(tag)
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
        /// Its kind is not in the catalog as this worker has it: it waits until the catalog was read again.
        var isUnknown = false
    }

    private func submit(_ requests: HTTPRequestBatch) {
        client.assumeIsolated { $0.submit(requests) }
    }

    private func begin(
        _ dispatch: ClaimedDispatch, of batch: ClaimedBatch, kinds: [KindNumber: Kind], route: Route, now: Timestamp,
        into requests: inout HTTPRequestBatch
    ) -> Begun {
        guard let kind = kinds[dispatch.kind] else {
            return Begun(notification: dispatch.notification, isUnknown: true)
        }
        let push = OutgoingPush(dispatch: dispatch, kind: kind, route: route, now: now)
        let refusal = provider.begin(push, text: batch.text, into: &requests)
        return Begun(notification: dispatch.notification, refusal: refusal)
    }

    /// Reads an answer.
    func decode(_ response: HTTPResponse, _ text: [UInt8]) -> Outcome {
        provider.decode(response, text: text)
    }

    /// Makes a new access token; false when one was made too recently.
    func replaceToken(wallClock: Int64) -> Bool {
        provider.replaceToken(now: wallClock)
    }

    /// Reads the credential again; whether it is another, or nil when it cannot be used and the old one stays.
    func reloadCredential(wallClock: Int64) -> Bool? {
        provider.reloadCredential(now: wallClock)
    }

    /// Drops the connections in favour of new ones, without losing a request.
    func reconnect() {
        client.assumeIsolated { $0.replaceConnections() }
    }

    /// Waits for open requests, then resets what is left.
    func close(within limit: Duration) async {
        await client.close(within: limit)
    }
}
