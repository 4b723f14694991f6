/// Tells a flood of frames from work.
///
/// A peer can send frames that lead to nothing for ever: PING, SETTINGS, resets of streams that are gone, empty DATA,
/// interim answers, WINDOW_UPDATE by single bytes, frames of unknown types. Each costs it little, and none is
/// forbidden. So frames of all types draw on one account, which requests and time fill up again. Frame heads are found
/// in the bytes themselves, because nghttp2 reports none of the frames that it skips.
struct FrameMeter {
    /// Frames that may come at once without being accounted for by requests.
    static let burst = 10_000
    /// Frames that each request accounts for: an answer in pieces, and window updates for both directions.
    static let perRequest = 16
    /// Frames a second that are no burden even to an idle client.
    static let perSecond = 1000

    private var credit = FrameMeter.burst
    private var filledAt: ContinuousClock.Instant
    /// Bytes of the payload in progress that are still to come.
    private var payloadLeft = 0
    /// Bytes of the head in progress that have come, and the length of its payload as far as it is known.
    private var headCount = 0
    private var length = 0

    /// A full account.
    init(at now: ContinuousClock.Instant) {
        filledAt = now
    }

    /// Accounts for the frames of one more request.
    mutating func requestSent() {
        credit = min(Self.burst, credit + Self.perRequest)
    }

    /// Takes note of bytes from the peer; false when there were more frames than there is an account for.
    mutating func take(_ bytes: UnsafePointer<UInt8>, count: Int, at now: ContinuousClock.Instant) -> Bool {
        var offset = 0
        while offset < count {
            if payloadLeft > 0 {
                let skipped = min(payloadLeft, count - offset)
                payloadLeft -= skipped
                offset += skipped
                continue
            }
            // RFC 9113 4.1: 24 bits of length, then 6 bytes that do not matter here.
            if headCount == 0, count - offset >= 9 {
                payloadLeft = Int(bytes[offset]) << 16 | Int(bytes[offset + 1]) << 8 | Int(bytes[offset + 2])
                offset += 9
                credit -= 1
                continue
            }
            if headCount < 3 { length = length << 8 | Int(bytes[offset]) }
            headCount += 1
            offset += 1
            if headCount == 9 {
                payloadLeft = length
                headCount = 0
                length = 0
                credit -= 1
            }
        }
        return credit >= 0 || refill(at: now)
    }

    private mutating func refill(at now: ContinuousClock.Instant) -> Bool {
        let seconds = (now - filledAt) / .seconds(1)
        filledAt = now
        credit = min(Self.burst, credit + Int(min(seconds * Double(Self.perSecond), Double(Self.burst))))
        return credit >= 0
    }
}
