import CNGHTTP2

/// The nghttp2 session of a connection and the callbacks through which it reports. Each callback finds its connection
/// by the session's user data and its stream by the stream's; neither outlives the session.
enum ServerSession {
    /// A new session with its first SETTINGS submitted. The connection deletes it.
    static func make(for connection: ServerConnection, _ settings: ServerSettings) -> OpaquePointer? {
        var callbacks: OpaquePointer?
        guard nghttp2_session_callbacks_new(&callbacks) == 0 else { return nil }
        defer { nghttp2_session_callbacks_del(callbacks) }
        nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, beginHeaders)
        nghttp2_session_callbacks_set_on_header_callback(callbacks, header)
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, dataChunk)
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, frameReceived)
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, streamClosed)
        nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, invalidFrame)
        var session: OpaquePointer?
        let owner = Unmanaged.passUnretained(connection).toOpaque()
        guard nghttp2_session_server_new(&session, callbacks, owner) == 0, let session else { return nil }
        let entries = [
            entry(NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, 4096),
            entry(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, settings.concurrentStreams),
            entry(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, settings.initialWindow),
            entry(NGHTTP2_SETTINGS_MAX_FRAME_SIZE, 16_384),
            entry(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, settings.headerListSize),
        ]
        nghttp2_submit_settings(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), entries, entries.count)
        return session
    }

    private static func entry(_ identifier: nghttp2_settings_id, _ value: UInt32) -> nghttp2_settings_entry {
        nghttp2_settings_entry(settings_id: Int32(identifier.rawValue), value: value)
    }
}

extension ServerConnection {
    /// Hands the answer of `stream` to nghttp2, which copies its headers and fetches its body piece by piece.
    func submitAnswer(_ stream: ServerStream, _ session: OpaquePointer) {
        let count = stream.answerHeaders.count
        stream.answerBytes.withUnsafeBufferPointer { bytes in
            guard let base = UnsafeMutablePointer(mutating: bytes.baseAddress) else { return }
            withUnsafeTemporaryAllocation(of: nghttp2_nv.self, capacity: count) { list in
                for (index, header) in stream.answerHeaders.enumerated() {
                    // Only the status repeats; an id in the table would push out what does.
                    let flags = index == 0 ? NGHTTP2_NV_FLAG_NONE : NGHTTP2_NV_FLAG_NO_INDEX
                    list.initializeElement(
                        at: index,
                        to: nghttp2_nv(
                            name: base + header.name.lowerBound, value: base + header.value.lowerBound,
                            namelen: header.name.count, valuelen: header.value.count, flags: UInt8(flags.rawValue)))
                }
                if stream.answerBody.isEmpty {
                    nghttp2_submit_response(session, stream.number, list.baseAddress, count, nil)
                } else {
                    var provider = nghttp2_data_provider()
                    provider.read_callback = readAnswerBody
                    nghttp2_submit_response(session, stream.number, list.baseAddress, count, &provider)
                }
            }
        }
    }
}

private func withConnection<Result>(
    _ userData: UnsafeMutableRawPointer?, _ absent: Result, _ body: (ServerConnection) -> Result
) -> Result {
    guard let userData else { return absent }
    return Unmanaged<ServerConnection>.fromOpaque(userData)._withUnsafeGuaranteedRef(body)
}

private func withStream<Result>(
    _ session: OpaquePointer?, _ number: Int32, _ absent: Result, _ body: (ServerStream) -> Result
) -> Result {
    guard let pointer = nghttp2_session_get_stream_user_data(session, number) else { return absent }
    return Unmanaged<ServerStream>.fromOpaque(pointer)._withUnsafeGuaranteedRef(body)
}

private func beginHeaders(
    _ session: OpaquePointer?, _ frame: UnsafePointer<nghttp2_frame>?, _ userData: UnsafeMutableRawPointer?
) -> Int32 {
    guard let frame, frame.pointee.hd.type == UInt8(NGHTTP2_HEADERS.rawValue),
        frame.pointee.headers.cat == NGHTTP2_HCAT_REQUEST
    else { return 0 }
    return withConnection(userData, 0) { connection in
        let number = frame.pointee.hd.stream_id
        let stream = connection.openStream(number)
        return nghttp2_session_set_stream_user_data(session, number, Unmanaged.passUnretained(stream).toOpaque())
    }
}

private func header(
    _ session: OpaquePointer?, _ frame: UnsafePointer<nghttp2_frame>?, _ name: UnsafePointer<UInt8>?,
    _ nameLength: Int, _ value: UnsafePointer<UInt8>?, _ valueLength: Int, _ flags: UInt8,
    _ userData: UnsafeMutableRawPointer?
) -> Int32 {
    guard let frame else { return 0 }
    return withStream(session, frame.pointee.hd.stream_id, 0) { stream in
        let kept = stream.addHeader(
            UnsafeBufferPointer(start: name, count: nameLength), UnsafeBufferPointer(start: value, count: valueLength))
        return kept ? 0 : Int32(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue)
    }
}

private func dataChunk(
    _ session: OpaquePointer?, _ flags: UInt8, _ number: Int32, _ data: UnsafePointer<UInt8>?, _ length: Int,
    _ userData: UnsafeMutableRawPointer?
) -> Int32 {
    withStream(session, number, 0) { stream in
        stream.addBody(UnsafeBufferPointer(start: data, count: length))
        return 0
    }
}

private func frameReceived(
    _ session: OpaquePointer?, _ frame: UnsafePointer<nghttp2_frame>?, _ userData: UnsafeMutableRawPointer?
) -> Int32 {
    guard let frame else { return 0 }
    let type = frame.pointee.hd.type
    let carriesRequest = type == UInt8(NGHTTP2_HEADERS.rawValue) || type == UInt8(NGHTTP2_DATA.rawValue)
    guard carriesRequest, frame.pointee.hd.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0 else { return 0 }
    return withConnection(userData, 0) { connection in
        withStream(session, frame.pointee.hd.stream_id, 0) { stream in
            connection.requestArrived(stream)
            return 0
        }
    }
}

private func streamClosed(
    _ session: OpaquePointer?, _ number: Int32, _ code: UInt32, _ userData: UnsafeMutableRawPointer?
) -> Int32 {
    withConnection(userData, 0) { connection in
        withStream(session, number, 0) { stream in
            connection.closeStream(stream)
            return 0
        }
    }
}

private func invalidFrame(
    _ session: OpaquePointer?, _ frame: UnsafePointer<nghttp2_frame>?, _ code: Int32,
    _ userData: UnsafeMutableRawPointer?
) -> Int32 {
    // A stream beyond a limit that the client cannot know of yet: refused, and nobody's fault.
    if code == NGHTTP2_ERR_REFUSED_STREAM.rawValue { return 0 }
    return withConnection(userData, 0) { connection in
        connection.clientBrokeProtocol()
        return 0
    }
}

private func readAnswerBody(
    _ session: OpaquePointer?, _ number: Int32, _ room: UnsafeMutablePointer<UInt8>?, _ length: Int,
    _ flags: UnsafeMutablePointer<UInt32>?, _ source: UnsafeMutablePointer<nghttp2_data_source>?,
    _ userData: UnsafeMutableRawPointer?
) -> Int {
    withStream(session, number, Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue)) { stream in
        let count = min(length, stream.answerBody.count - stream.answerSent)
        stream.answerBody.withUnsafeBufferPointer { body in
            guard let base = body.baseAddress else { return }
            room?.update(from: base + stream.answerSent, count: count)
        }
        stream.answerSent += count
        if stream.answerSent == stream.answerBody.count { flags?.pointee |= UInt32(NGHTTP2_DATA_FLAG_EOF.rawValue) }
        return count
    }
}
