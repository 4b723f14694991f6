import CNGHTTP2

/// The server's side of an HTTP/2 connection without a socket: nghttp2, whose callbacks only take notes.
final class PeerSession {
    /// What the client did, in order.
    enum Event {
        /// A request's headers came; `tag` is the number in its path.
        case headers(stream: Int32, tag: Int)
        /// All of the request has come.
        case whole(stream: Int32)
        /// The client reset the stream.
        case reset(stream: Int32)
        /// Nothing more will happen on the stream.
        case closed(stream: Int32)
        /// Our settings are in force at the client.
        case settingsAcknowledged
        case ping([UInt8])
        case goAway(code: UInt32)
        /// The client broke HTTP/2.
        case fault(String)
    }

    private var events: [Event] = []
    /// Bodies that are being sent, by their streams.
    private var bodies: [Int32: PeerBody] = [:]
    private var paths: [Int32: Int] = [:]
    /// Bytes of bodies that were taken and for which no window was opened again, by streams.
    private var unconsumed: [(stream: Int32, count: Int)] = []
    private(set) var failure: String?
    private var pointer: OpaquePointer?

    init() {
        var options: OpaquePointer?
        var callbacks: OpaquePointer?
        nghttp2_option_new(&options)
        nghttp2_session_callbacks_new(&callbacks)
        nghttp2_option_set_no_auto_window_update(options, 1)
        nghttp2_option_set_no_auto_ping_ack(options, 1)
        // It counts by the clock of the machine, which is none of ours.
        nghttp2_option_set_stream_reset_rate_limit(options, 1_000_000, 1_000_000)
        Self.setCallbacks(callbacks)
        let context = Unmanaged.passUnretained(self).toOpaque()
        let result = nghttp2_session_server_new2(&pointer, callbacks, context, options)
        precondition(result == 0, "nghttp2 makes no session: \(result)")
        nghttp2_option_del(options)
        nghttp2_session_callbacks_del(callbacks)
    }

    deinit {
        nghttp2_session_del(pointer)
    }

    private static func setCallbacks(_ callbacks: OpaquePointer?) {
        nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks) { _, frame, context in
            guard let frame, let context else { return 0 }
            Unmanaged<PeerSession>.fromOpaque(context)._withUnsafeGuaranteedRef {
                $0.paths[frame.pointee.hd.stream_id] = -1
            }
            return 0
        }
        nghttp2_session_callbacks_set_on_header_callback(callbacks) {
            _, frame, name, nameCount, value, valueCount, _, context in
            guard let frame, let name, let value, let context else { return 0 }
            guard nameCount == 5, name[1] == UInt8(ascii: "p") else { return 0 }
            let path = String(decoding: UnsafeBufferPointer(start: value, count: valueCount), as: UTF8.self)
            Unmanaged<PeerSession>.fromOpaque(context)._withUnsafeGuaranteedRef {
                $0.paths[frame.pointee.hd.stream_id] = Int(path.split(separator: "/").last ?? "") ?? -1
            }
            return 0
        }
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) { _, _, stream, _, count, context in
            guard let context else { return 0 }
            Unmanaged<PeerSession>.fromOpaque(context)._withUnsafeGuaranteedRef {
                $0.unconsumed.append((stream, count))
            }
            return 0
        }
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { _, frame, context in
            guard let frame, let context else { return 0 }
            Unmanaged<PeerSession>.fromOpaque(context)._withUnsafeGuaranteedRef { $0.received(frame.pointee) }
            return 0
        }
        nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks) { _, frame, code, context in
            guard let frame, let context else { return 0 }
            Unmanaged<PeerSession>.fromOpaque(context)._withUnsafeGuaranteedRef {
                $0.invalid(frame.pointee.hd.type, code)
            }
            return 0
        }
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) { _, stream, _, context in
            guard let context else { return 0 }
            Unmanaged<PeerSession>.fromOpaque(context)._withUnsafeGuaranteedRef {
                $0.bodies[stream] = nil
                $0.events.append(.closed(stream: stream))
            }
            return 0
        }
    }

    private func invalid(_ type: UInt8, _ code: Int32) {
        // More streams than a limit that the client has not heard of yet: refused, and nobody's fault.
        guard code != NGHTTP2_ERR_REFUSED_STREAM.rawValue else { return }
        events.append(.fault("frame \(type): \(String(cString: nghttp2_strerror(code)))"))
    }

    private func received(_ frame: nghttp2_frame) {
        let stream = frame.hd.stream_id
        switch UInt32(frame.hd.type) {
        case NGHTTP2_HEADERS.rawValue:
            events.append(.headers(stream: stream, tag: paths.removeValue(forKey: stream) ?? -1))
        case NGHTTP2_RST_STREAM.rawValue:
            events.append(.reset(stream: stream))
        case NGHTTP2_SETTINGS.rawValue where frame.hd.flags & UInt8(NGHTTP2_FLAG_ACK.rawValue) != 0:
            events.append(.settingsAcknowledged)
        case NGHTTP2_PING.rawValue where frame.hd.flags & UInt8(NGHTTP2_FLAG_ACK.rawValue) == 0:
            let data = frame.ping.opaque_data
            events.append(
                .ping([data.0, data.1, data.2, data.3, data.4, data.5, data.6, data.7]))
        case NGHTTP2_GOAWAY.rawValue:
            events.append(.goAway(code: frame.goaway.error_code))
        default:
            break
        }
        let carries = frame.hd.type == UInt8(NGHTTP2_HEADERS.rawValue) || frame.hd.type == UInt8(NGHTTP2_DATA.rawValue)
        if carries, frame.hd.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0 {
            events.append(.whole(stream: stream))
        }
    }

    // MARK: Bytes

    /// What has happened since this was last asked for.
    func takeEvents() -> [Event] {
        defer { events = [] }
        return events
    }

    /// Takes bytes of the client.
    func receive(_ bytes: [UInt8]) {
        let result = nghttp2_session_mem_recv(pointer, bytes, bytes.count)
        if result < 0 { failure = String(cString: nghttp2_strerror(Int32(result))) }
    }

    /// Frames that wait to be sent.
    func takeOutput() -> [UInt8] {
        var output: [UInt8] = []
        while true {
            var bytes: UnsafePointer<UInt8>?
            let count = nghttp2_session_mem_send(pointer, &bytes)
            guard count > 0, let bytes else {
                if count < 0 { failure = String(cString: nghttp2_strerror(Int32(count))) }
                return output
            }
            output += UnsafeBufferPointer(start: bytes, count: count)
        }
    }

    /// Opens windows again for what was taken of bodies.
    func openWindows() {
        for (stream, count) in unconsumed { nghttp2_session_consume(pointer, stream, count) }
        unconsumed = []
    }

    // MARK: Frames

    func settings(streams: Int?, window: Int?) {
        let list = [
            (NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, streams), (NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window),
        ]
        let entries = list.compactMap { setting, value in
            value.map { nghttp2_settings_entry(settings_id: Int32(setting.rawValue), value: UInt32($0)) }
        }
        nghttp2_submit_settings(pointer, 0, entries, entries.count)
    }

    func answerPing(_ data: [UInt8]) {
        nghttp2_submit_ping(pointer, UInt8(NGHTTP2_FLAG_ACK.rawValue), data)
    }

    func warnOfGoAway() { nghttp2_submit_shutdown_notice(pointer) }

    func goAway(last: Int32, code: nghttp2_error_code, words: String) {
        let bytes = Array(words.utf8)
        nghttp2_submit_goaway(pointer, 0, last, code.rawValue, bytes, bytes.count)
    }

    func reset(_ stream: Int32, _ code: nghttp2_error_code) {
        nghttp2_submit_rst_stream(pointer, 0, stream, code.rawValue)
    }

    /// An interim answer.
    func inform(_ stream: Int32) {
        withFields([(":status", "103"), ("link", "nothing")]) { fields, count in
            _ = nghttp2_submit_headers(pointer, 0, stream, nil, fields, count, nil)
        }
    }

    /// An answer: its headers now, its body as the client's windows let it.
    func respond(_ stream: Int32, _ answer: PeerAnswer) {
        let body = PeerBody(answer)
        bodies[stream] = body
        withFields([(":status", "\(answer.status)"), ("apns-id", "\(answer.tag)")]) { fields, count in
            guard answer.hasBody else {
                nghttp2_submit_response(pointer, stream, fields, count, nil)
                return
            }
            var provider = nghttp2_data_provider()
            provider.source.ptr = Unmanaged.passUnretained(body).toOpaque()
            provider.read_callback = { pointer, stream, buffer, capacity, flags, source, _ in
                guard let source = source?.pointee.ptr, let buffer, let flags else { return 0 }
                return Unmanaged<PeerBody>.fromOpaque(source)._withUnsafeGuaranteedRef { body in
                    let (count, isLast) = body.fill(buffer, capacity)
                    if count == 0, !isLast { return Int(NGHTTP2_ERR_DEFERRED.rawValue) }
                    guard isLast else { return count }
                    flags.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue
                    if body.answer.hasTrailers {
                        flags.pointee |= NGHTTP2_DATA_FLAG_NO_END_STREAM.rawValue
                        PeerSession.submitTrailers(pointer, stream)
                    }
                    return count
                }
            }
            nghttp2_submit_response(pointer, stream, fields, count, &provider)
        }
    }

    private static func submitTrailers(_ pointer: OpaquePointer?, _ stream: Int32) {
        withFields([("grpc-status", "0")]) { fields, count in
            _ = nghttp2_submit_trailer(pointer, stream, fields, count)
        }
    }

    private func withFields(_ list: [(String, String)], _ body: (UnsafePointer<nghttp2_nv>, Int) -> Void) {
        Self.withFields(list, body)
    }

    /// Headers in the form of nghttp2, which copies them.
    private static func withFields(_ list: [(String, String)], _ body: (UnsafePointer<nghttp2_nv>, Int) -> Void) {
        var text: [UInt8] = list.flatMap { Array($0.0.utf8) + Array($0.1.utf8) }
        text.withUnsafeMutableBufferPointer { text in
            var next = text.baseAddress
            let fields = list.map { name, value in
                let start = next
                let middle = next?.advanced(by: name.utf8.count)
                next = middle?.advanced(by: value.utf8.count)
                return nghttp2_nv(
                    name: start, value: middle, namelen: name.utf8.count, valuelen: value.utf8.count, flags: 0)
            }
            fields.withUnsafeBufferPointer { fields in
                if let base = fields.baseAddress { body(base, fields.count) }
            }
        }
    }
}
