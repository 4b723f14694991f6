import CNGHTTP2

/// What comes from the peer, as the callbacks report it.
extension HTTP2Session {
    func headersBegin(_ slot: RequestPointer?) {
        current = slot
        headerListSize = 0
    }

    func headerReceived(
        _ name: UnsafePointer<UInt8>, _ nameCount: Int, _ value: UnsafePointer<UInt8>, _ valueCount: Int
    ) {
        headerListSize += nameCount + valueCount + 32
        guard headerListSize <= headerListLimit else {
            return breakOff("a header list of more than \(headerListLimit) bytes")
        }
        guard let slot = current, !slot.pointee.hasHeaders else { return }
        if name[0] == UInt8(ascii: ":") {
            // nghttp2 has checked that it is one :status of three digits before all other headers.
            guard valueCount == 3 else { return }
            slot.pointee.status = digit(value[0]) * 100 + digit(value[1]) * 10 + digit(value[2])
        } else if captured.count > 0, let index = captured.index(of: name, count: nameCount) {
            let start = slot.pointee.buffer.count
            slot.pointee.buffer.append(value, count: valueCount)
            slot.pointee.captured[index] = ByteSlice(start: start, count: valueCount)
            slot.pointee.bodyStart = start + valueCount
        }
    }

    private func digit(_ byte: UInt8) -> Int { Int(byte) - Int(UInt8(ascii: "0")) }

    /// Ends the session in order, because the peer sends too much of something; nothing more is read.
    func breakOff(_ reason: String) {
        guard !isBrokenOff else { return }
        isBrokenOff = true
        violation = reason
        terminate(NGHTTP2_ENHANCE_YOUR_CALM)
    }

    func bodyReceived(_ slot: RequestPointer, _ bytes: UnsafePointer<UInt8>, _ count: Int) {
        let kept = min(count, bodyLimit - (slot.pointee.buffer.count - slot.pointee.bodyStart))
        slot.pointee.buffer.append(bytes, count: kept)
        if kept < count { slot.pointee.bodyWasCut = true }
    }

    func frameReceived(_ frame: UnsafePointer<nghttp2_frame>, on pointer: OpaquePointer) {
        let head = frame.pointee.hd
        switch UInt32(head.type) {
        case NGHTTP2_HEADERS.rawValue:
            if let slot = current { headersReceived(slot, endsStream: endsStream(head)) }
        case NGHTTP2_DATA.rawValue where endsStream(head):
            if let slot = SessionCallbacks.slot(pointer, head.stream_id) { answerIsWhole(slot) }
        case NGHTTP2_RST_STREAM.rawValue:
            SessionCallbacks.slot(pointer, head.stream_id)?.pointee.isResetByPeer = true
        case NGHTTP2_SETTINGS.rawValue where head.flags & UInt8(NGHTTP2_FLAG_ACK.rawValue) == 0:
            settingsReceived(pointer)
        case NGHTTP2_GOAWAY.rawValue:
            goAwayReceived(frame.pointee.goaway)
        default:
            break
        }
    }

    private func endsStream(_ head: nghttp2_frame_hd) -> Bool {
        head.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0
    }

    private func headersReceived(_ slot: RequestPointer, endsStream: Bool) {
        current = nil
        slot.pointee.answerHasBegun = true
        if slot.pointee.status < 200, !slot.pointee.hasHeaders {
            // An interim answer (RFC 9110 15.2): the final one is still to come. nghttp2 refuses END_STREAM here.
            slot.pointee.forgetAnswer()
        } else {
            slot.pointee.hasHeaders = true
        }
        if endsStream { answerIsWhole(slot) }
    }

    private func answerIsWhole(_ slot: RequestPointer) {
        slot.pointee.isComplete = true
        // The peer may answer before it has read our body (RFC 9113 8.1); the rest of it need not be sent.
        if !slot.pointee.bodyIsSent { resetStream(slot.pointee.streamID, code: NGHTTP2_NO_ERROR) }
    }

    private func settingsReceived(_ pointer: OpaquePointer) {
        hasSettings = true
        // A first SETTINGS that names no limit lifts the one we had to assume; nghttp2 has done so already.
        let value = nghttp2_session_get_remote_settings(pointer, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS)
        streamLimit = min(Int(value), streamsMax)
    }

    private func goAwayReceived(_ frame: nghttp2_goaway) {
        goAways += 1
        let text = UnsafeBufferPointer(start: frame.opaque_data, count: min(frame.opaque_data_len, 200))
        goAway = GoAway(
            lastStreamID: frame.last_stream_id, code: frame.error_code,
            debugData: String(decoding: text.filter { $0 >= 0x20 && $0 < 0x7F }, as: UTF8.self))
    }

    func frameWithheld(_ type: UInt8, streamID: Int32) {
        guard UInt32(type) == NGHTTP2_HEADERS.rawValue, submitting?.pointee.streamID == streamID else { return }
        wasWithheld = true
    }

    func streamClosed(_ slot: RequestPointer?, code: UInt32) {
        openStreams -= 1
        if let slot { ended.append(EndedStream(slot: slot, code: code)) }
    }
}
