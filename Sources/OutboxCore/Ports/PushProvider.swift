/// A provider behind one lane: *encode a request for this target and payload; decode an answer into an outcome*.
/// Connections, concurrency, pause, retry and ledger are shared by all providers and live elsewhere.
///
/// `Requests` and `Response` are what the transport takes and gives; the core knows neither.
package protocol PushProvider<Requests, Response> {
    /// Requests that the transport sends together.
    associatedtype Requests
    /// What the transport brings back.
    associatedtype Response

    /// Makes sure that requests can be authorised at `now` (wall clock of this process, seconds since the Unix epoch),
    /// and asks for what that takes. Nothing is sent unless access is granted. A probe, which finds out whether what
    /// was refused is right by now, reads the credential again first.
    mutating func authorize(now: Int64, isProbe: Bool) -> ProviderAccess

    /// Names the access token that requests encoded from now on carry: another one for each other token, going round.
    var tokenMark: UInt8 { get }

    /// Encodes the part that all targets of a notification share (body, expiration, collapse key) and keeps it until
    /// the next call. An outcome other than nil refuses all its targets without a request.
    mutating func begin(_ push: OutgoingPush, text: [UInt8], into requests: inout Requests) -> Outcome?

    /// Encodes the request for one target of the notification begun last. An outcome other than nil refuses the target
    /// without a request (a malformed token).
    mutating func add(_ target: ClaimedTarget, tag: UInt64, text: [UInt8], into requests: inout Requests) -> Outcome?

    /// What makes a kind of the catalog one that this provider cannot take, whatever its payload; nil when nothing
    /// does. Asked when the catalog was read, so that a wrong combination is known before anything is sent.
    func fault(of kind: Kind) -> String?

    /// Reads an answer whose slices point into `text`. Total: an answer that is in no table is judged by its status
    /// class.
    func decode(_ response: Response, text: [UInt8]) -> Outcome

    /// An answer with `LaneAdvice.replaceToken`, `refusal`, came to a request that carried the token `mark`: makes or
    /// asks for a new one, unless that is not the one in use any more.
    mutating func replaceToken(_ mark: UInt8, because refusal: Outcome, now: Int64) -> TokenReplacement

    /// An operator says that the credential may have been replaced: reads it again. Whether it is another than the one
    /// this lane has been using, which is used from now on; nil when it cannot be used, was told, and the old one
    /// stays in use.
    mutating func reloadCredential(now: Int64) -> Bool?
}

extension PushProvider {
    /// A provider without rules of its own takes every kind.
    package func fault(of kind: Kind) -> String? { nil }
}
