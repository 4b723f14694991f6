import CNGHTTP2

/// What a stand-in does about a request instead of answering it; the same for every service.
package enum ConnectionFault: String, Equatable, Sendable, CaseIterable {
    /// No answer, ever; the connection goes on.
    case silence
    /// The request is taken and the stream reset with INTERNAL_ERROR.
    case reset
    /// The stream is refused with REFUSED_STREAM: the request counts as not processed.
    case refused = "refused_stream"
    /// The same, and the stream is reset once more with STREAM_CLOSED, as APNs does when it throttles.
    case refusedTwice = "refused_stream_twice"
    /// The request is taken and the connection closed.
    case closed
    /// GOAWAY that leaves this stream out: the request counts as not processed.
    case goneAway = "goaway"
}

extension ServerConnection {
    /// Does to `stream` what `fault` says; `debugData` goes into a GOAWAY.
    func leaveUnanswered(_ stream: ServerStream, _ fault: ConnectionFault, debugData: [UInt8]) {
        switch fault {
        case .silence: break
        case .reset: reset(stream, code: UInt32(NGHTTP2_INTERNAL_ERROR.rawValue))
        case .refused: reset(stream, code: UInt32(NGHTTP2_REFUSED_STREAM.rawValue))
        case .refusedTwice:
            reset(
                stream, code: UInt32(NGHTTP2_REFUSED_STREAM.rawValue), andAgain: UInt32(NGHTTP2_STREAM_CLOSED.rawValue))
        case .closed: drop()
        case .goneAway:
            goAway(
                lastStream: max(0, stream.number - 2), code: UInt32(NGHTTP2_NO_ERROR.rawValue), debugData: debugData)
        }
    }
}
