import CNGHTTP2
import Glibc

/// One side of an HTTP/2 connection without its socket: bytes in, bytes out, and what became of the streams.
///
/// A thin shell around an nghttp2 session. Its callbacks only take notes (`ended`, `goAway`, `streamLimit`); whoever
/// feeds it looks at them afterwards, so that nothing of ours runs inside nghttp2.
final class HTTP2Session {
    /// A stream that is closed while its request had no result.
    struct EndedStream {
        let slot: RequestPointer
        /// RFC 9113 7.
        let code: UInt32
    }

    /// The last GOAWAY.
    struct GoAway {
        var lastStreamID: Int32
        var code: UInt32
        /// The peer's own words, printable ASCII only.
        var debugData: String
    }

    /// Streams that are not closed on both sides.
    var openStreams = 0
    /// The peer's MAX_CONCURRENT_STREAMS: 1 until its first SETTINGS, then what it says, unlimited if it says nothing;
    /// never more than we want.
    var streamLimit = 1
    var hasSettings = false
    var goAway: GoAway?
    var goAways = 0
    /// Streams that ended since the list was last emptied.
    var ended: [EndedStream] = []
    /// Why the session cannot go on at all: nothing more can be read or written.
    var failure: String?
    /// What the peer did wrong, or sent too much of, when that ends the session in order.
    var violation: String?
    /// We have ended it because of `violation`: all that is left is to say so.
    var isBrokenOff = false

    /// The request whose headers are being read.
    var current: RequestPointer?
    /// Size of the header list that is being read, as RFC 9113 6.5.2 counts.
    var headerListSize = 0
    /// The request that was submitted last, and whether nghttp2 has kept it back.
    var submitting: RequestPointer?
    var wasWithheld = false
    let streamsMax: Int
    let headerListLimit: Int
    let bodyLimit: Int
    let captured: CapturedHeaders

    private var meter: FrameMeter
    private var pointer: OpaquePointer?
    private let fields: UnsafeMutablePointer<nghttp2_nv>
    private let authority: UnsafeMutableBufferPointer<UInt8>
    private static let ownFields = 4
    private static let fieldsMax = ownFields + SubmittedBatch.sharedHeadersMax + 4

    init(_ configuration: HTTP2ClientConfiguration, captured: CapturedHeaders, at now: ContinuousClock.Instant) {
        meter = FrameMeter(at: now)
        streamsMax = configuration.streamsMax
        headerListLimit = configuration.headerListLimit
        bodyLimit = configuration.bodyLimit
        self.captured = captured
        let name = configuration.authority
        authority = .allocate(capacity: name.utf8.count)
        _ = authority.initialize(from: name.utf8)
        fields = .allocate(capacity: Self.fieldsMax)
        fields.initialize(repeating: nghttp2_nv(), count: Self.fieldsMax)
        fields[0] = Self.field(":method", "POST")
        fields[1] = Self.field(":scheme", "https")
        fields[2] = Self.field(":authority", "")
        fields[2].value = authority.baseAddress
        fields[2].valuelen = authority.count
        fields[3] = Self.field(":path", "", flags: FieldFlags.unindexed)
        pointer = SessionCallbacks.makeSession(for: self)
        sendSettings()
    }

    deinit {
        nghttp2_session_del(pointer)
        fields.deallocate()
        authority.deallocate()
    }

    private static func field(
        _ name: StaticString, _ value: StaticString, flags: UInt8 = FieldFlags.indexed
    ) -> nghttp2_nv {
        nghttp2_nv(
            name: UnsafeMutablePointer(mutating: name.utf8Start),
            value: UnsafeMutablePointer(mutating: value.utf8Start),
            namelen: name.utf8CodeUnitCount, valuelen: value.utf8CodeUnitCount, flags: flags)
    }

    private func sendSettings() {
        var settings = [
            nghttp2_settings_entry(settings_id: Int32(NGHTTP2_SETTINGS_ENABLE_PUSH.rawValue), value: 0),
            nghttp2_settings_entry(
                settings_id: Int32(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE.rawValue), value: UInt32(headerListLimit)),
        ]
        let result = nghttp2_submit_settings(pointer, UInt8(NGHTTP2_FLAG_NONE.rawValue), &settings, settings.count)
        precondition(result == 0, "nghttp2 refused our SETTINGS: \(result)")
    }

    // MARK: Requests

    /// Bytes of bodies that the peer's connection window still takes.
    var sendWindow: Int { Int(nghttp2_session_get_remote_window_size(pointer)) }

    /// The id that the next request would get.
    var nextStreamID: UInt32 { nghttp2_session_get_next_stream_id(pointer) }

    /// Opens a stream for `slot`; false when the session cannot, which leaves the request unsent.
    func submit(_ slot: RequestPointer) -> Bool {
        let bytes = UnsafeMutablePointer(mutating: slot.pointee.bytes)
        let request = slot.pointee.request
        fields[3].value = bytes + Int(request.pointee.path.start)
        fields[3].valuelen = Int(request.pointee.path.count)
        let shared = slot.pointee.headerCount
        (fields + Self.ownFields).update(from: slot.pointee.headers, count: shared)
        var count = Self.ownFields + shared
        for index in 0..<request.pointee.fieldCount {
            let field = request.pointee.fields[index]
            let name = field.name.text
            fields[count] = nghttp2_nv(
                name: UnsafeMutablePointer(mutating: name.utf8Start), value: bytes + Int(field.value.start),
                namelen: name.utf8CodeUnitCount, valuelen: Int(field.value.count), flags: FieldFlags.unindexed)
            count += 1
        }
        var body = SessionCallbacks.body(of: slot)
        let isEmpty = request.pointee.body.isEmpty
        let id = withUnsafePointer(to: &body) { body in
            nghttp2_submit_request(pointer, nil, fields, count, isEmpty ? nil : body, slot)
        }
        guard id > 0 else { return false }
        slot.pointee.streamID = id
        slot.pointee.bodyIsSent = isEmpty
        openStreams += 1
        meter.requestSent()
        submitting = slot
        return true
    }

    /// Whether the request that was submitted last could not be made a frame; asked after `fill`.
    func takeWithheld() -> Bool {
        defer {
            submitting = nil
            wasWithheld = false
        }
        if wasWithheld { openStreams -= 1 }
        return wasWithheld
    }

    /// Resets the stream of a request that is no longer waited for. Whatever still comes for it is discarded.
    func cancel(_ slot: RequestPointer, code: nghttp2_error_code = NGHTTP2_CANCEL) {
        nghttp2_session_set_stream_user_data(pointer, slot.pointee.streamID, nil)
        resetStream(slot.pointee.streamID, code: code)
    }

    /// Resets a stream.
    func resetStream(_ id: Int32, code: nghttp2_error_code) {
        nghttp2_submit_rst_stream(pointer, UInt8(NGHTTP2_FLAG_NONE.rawValue), id, code.rawValue)
    }

    // MARK: The connection

    func sendPing() {
        nghttp2_submit_ping(pointer, UInt8(NGHTTP2_FLAG_NONE.rawValue), nil)
    }

    /// Says goodbye: a GOAWAY, after which nothing is read any more.
    func terminate(_ code: nghttp2_error_code = NGHTTP2_NO_ERROR) {
        nghttp2_session_terminate_session(pointer, code.rawValue)
    }

    /// Whether both sides have nothing more to say.
    var isOver: Bool {
        nghttp2_session_want_read(pointer) == 0 && nghttp2_session_want_write(pointer) == 0
    }

    /// Takes bytes from the peer.
    func receive(_ bytes: UnsafePointer<UInt8>, count: Int, at now: ContinuousClock.Instant) {
        if !hasSettings, count >= 5, memcmp(bytes, "HTTP/", 5) == 0 {
            // nghttp2 only sees a frame that is too large.
            violation = "the peer agreed on h2 and speaks HTTP/1.1"
        }
        guard meter.take(bytes, count: count, at: now) else {
            return breakOff("a flood of frames")
        }
        let result = nghttp2_session_mem_recv(pointer, bytes, count)
        if result < 0 { failure = SessionCallbacks.describe(Int32(result)) }
    }

    /// Moves frames into `output` until there are none or it is full.
    func fill(_ output: OutputBuffer) {
        while !output.isFull {
            var bytes: UnsafePointer<UInt8>?
            let count = nghttp2_session_mem_send(pointer, &bytes)
            guard count > 0, let bytes else {
                if count < 0 { failure = SessionCallbacks.describe(Int32(count)) }
                return
            }
            output.append(bytes, count: count)
        }
    }
}
