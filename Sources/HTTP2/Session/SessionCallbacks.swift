import CNGHTTP2
import Glibc

/// What nghttp2 calls: closure literals without captures. The session comes back through the user data pointer; it is
/// alive, because nobody calls into its nghttp2 session but itself.
enum SessionCallbacks {
    /// An nghttp2 client session with our bounds, whose callbacks take notes in `session`.
    static func makeSession(for session: HTTP2Session) -> OpaquePointer {
        var options: OpaquePointer?
        var callbacks: OpaquePointer?
        var pointer: OpaquePointer?
        nghttp2_option_new(&options)
        nghttp2_session_callbacks_new(&callbacks)
        defer {
            nghttp2_option_del(options)
            nghttp2_session_callbacks_del(callbacks)
        }
        // nghttp2 would assume 100 before the first SETTINGS. We open none before it; this is the second lock.
        nghttp2_option_set_peer_max_concurrent_streams(options, 1)
        setHeaderCallbacks(callbacks)
        setFrameCallbacks(callbacks)
        let context = Unmanaged.passUnretained(session).toOpaque()
        let result = nghttp2_session_client_new2(&pointer, callbacks, context, options)
        guard result == 0, let pointer else { preconditionFailure("nghttp2 makes no session: \(describe(result))") }
        return pointer
    }

    /// nghttp2's words for an error of its own.
    static func describe(_ code: Int32) -> String {
        String(cString: nghttp2_strerror(code))
    }

    private static func setHeaderCallbacks(_ callbacks: OpaquePointer?) {
        nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks) { pointer, frame, context in
            guard let pointer, let frame, let context else { return 0 }
            Unmanaged<HTTP2Session>.fromOpaque(context)._withUnsafeGuaranteedRef {
                $0.headersBegin(SessionCallbacks.slot(pointer, frame.pointee.hd.stream_id))
            }
            return 0
        }
        nghttp2_session_callbacks_set_on_header_callback(callbacks) {
            _, _, name, nameCount, value, valueCount, _, context in
            guard let name, let value, let context else { return 0 }
            Unmanaged<HTTP2Session>.fromOpaque(context)._withUnsafeGuaranteedRef {
                $0.headerReceived(name, nameCount, value, valueCount)
            }
            return 0
        }
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) {
            pointer, _, streamID, bytes, count, context in
            guard let pointer, let bytes, let context, let slot = SessionCallbacks.slot(pointer, streamID) else {
                return 0
            }
            Unmanaged<HTTP2Session>.fromOpaque(context)._withUnsafeGuaranteedRef {
                $0.bodyReceived(slot, bytes, count)
            }
            return 0
        }
    }

    private static func setFrameCallbacks(_ callbacks: OpaquePointer?) {
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { pointer, frame, context in
            guard let pointer, let frame, let context else { return 0 }
            Unmanaged<HTTP2Session>.fromOpaque(context)._withUnsafeGuaranteedRef {
                $0.frameReceived(frame, on: pointer)
            }
            return 0
        }
        nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks) { _, _, code, context in
            guard let context else { return 0 }
            Unmanaged<HTTP2Session>.fromOpaque(context)._withUnsafeGuaranteedRef {
                $0.violation = SessionCallbacks.describe(code)
            }
            return 0
        }
        nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks) { _, frame, _, context in
            guard let frame, let context else { return 0 }
            Unmanaged<HTTP2Session>.fromOpaque(context)._withUnsafeGuaranteedRef {
                $0.frameWithheld(frame.pointee.hd.type, streamID: frame.pointee.hd.stream_id)
            }
            return 0
        }
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) { pointer, streamID, code, context in
            guard let pointer, let context else { return 0 }
            Unmanaged<HTTP2Session>.fromOpaque(context)._withUnsafeGuaranteedRef {
                $0.streamClosed(SessionCallbacks.slot(pointer, streamID), code: code)
            }
            return 0
        }
    }

    /// The request of a stream; nil for one that is no longer waited for.
    static func slot(_ pointer: OpaquePointer, _ streamID: Int32) -> RequestPointer? {
        nghttp2_session_get_stream_user_data(pointer, streamID)?.assumingMemoryBound(to: RequestSlot.self)
    }

    /// The body of a request, for nghttp2 to read from when it makes DATA frames.
    static func body(of slot: RequestPointer) -> nghttp2_data_provider {
        var provider = nghttp2_data_provider()
        provider.source.ptr = UnsafeMutableRawPointer(slot)
        provider.read_callback = { _, streamID, buffer, capacity, flags, source, _ in
            guard let slot = source?.pointee.ptr?.assumingMemoryBound(to: RequestSlot.self), let buffer, let flags,
                slot.pointee.phase == .sent, slot.pointee.streamID == streamID
            else { return Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue) }
            let body = slot.pointee.request.pointee.body
            let offset = slot.pointee.bodyOffset
            let count = min(Int(body.count) - offset, capacity)
            memcpy(buffer, slot.pointee.bytes + Int(body.start) + offset, count)
            slot.pointee.bodyOffset = offset + count
            if offset + count == Int(body.count) {
                slot.pointee.bodyIsSent = true
                flags.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue
            }
            return count
        }
        return provider
    }
}
