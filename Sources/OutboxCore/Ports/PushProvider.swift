/// A provider behind one lane: *encode a request for this target and payload; decode an answer into an outcome*.
/// Connections, concurrency, pause, retry and ledger are shared by all providers and live elsewhere.
///
/// `Requests` and `Response` are what the transport takes and gives; the core knows neither.
package protocol PushProvider<Requests, Response> {
    /// Requests that the transport sends together.
    associatedtype Requests
    /// What the transport brings back.
    associatedtype Response

    /// Makes sure that requests can be authorised at `now` (wall clock of this process, seconds since the Unix epoch).
    /// An outcome other than nil says why not; nothing is sent then. A probe, which finds out whether what was refused
    /// is right by now, reads the credential again first.
    mutating func authorize(now: Int64, isProbe: Bool) -> Outcome?

    /// Encodes the part that all targets of a notification share (body, expiration, collapse key) and keeps it until
    /// the next call. An outcome other than nil refuses all its targets without a request.
    mutating func begin(_ push: OutgoingPush, text: [UInt8], into requests: inout Requests) -> Outcome?

    /// Encodes the request for one target of the notification begun last. An outcome other than nil refuses the target
    /// without a request (a malformed token).
    mutating func add(_ target: ClaimedTarget, tag: UInt64, text: [UInt8], into requests: inout Requests) -> Outcome?

    /// Reads an answer whose slices point into `text`. Total: an answer that is in no table is judged by its status
    /// class.
    func decode(_ response: Response, text: [UInt8]) -> Outcome

    /// The lane asks for a new access token after `LaneAdvice.replaceToken`; false when one was made too recently.
    mutating func replaceToken(now: Int64) -> Bool

    /// An operator says that the credential may have been replaced: reads it again. Whether it is another, which is
    /// used from now on; nil when it cannot be used, was told, and the old one stays in use.
    mutating func reloadCredential(now: Int64) -> Bool?
}
