/// Finds the frames in a stream of bytes, whatever pieces it comes in.
struct FrameScanner {
    /// A frame's head (RFC 9113 4.1), the beginning of its payload, and where it ends in the stream.
    struct Frame {
        var type: UInt8
        var flags: UInt8
        var stream: Int32
        var payload: [UInt8]
        /// Bytes of the stream up to and with this frame.
        var end: Int

        var endsStream: Bool { (type == Self.data || type == Self.headers) && flags & 1 != 0 }
        var isAcknowledgement: Bool { (type == Self.settings || type == Self.ping) && flags & 1 != 0 }

        /// The 32 bits at `place` of the payload.
        func number(at place: Int) -> UInt32 {
            payload[place..<place + 4].reduce(0) { $0 << 8 | UInt32($1) }
        }

        static let data: UInt8 = 0
        static let headers: UInt8 = 1
        static let reset: UInt8 = 3
        static let settings: UInt8 = 4
        static let ping: UInt8 = 6
        static let goAway: UInt8 = 7
    }

    /// Bytes of a payload that are kept: more than any list of settings that is sent here.
    private static let kept = 64

    private var skipped: Int
    private var head: [UInt8] = []
    private var payload: [UInt8] = []
    private var left = 0
    private var position = 0

    /// A stream that begins with so many bytes that are no frame.
    init(preface: Int = 0) {
        skipped = preface
    }

    /// Goes through more bytes and tells of each frame that ends in them.
    mutating func take(_ bytes: some Collection<UInt8>, _ tell: (Frame) -> Void) {
        var rest = bytes[...]
        while !rest.isEmpty {
            if skipped > 0 {
                let count = min(skipped, rest.count)
                skipped -= count
                position += count
                rest = rest.dropFirst(count)
            } else if head.count < 9 {
                let part = rest.prefix(9 - head.count)
                head += part
                position += part.count
                rest = rest.dropFirst(part.count)
                if head.count == 9 { left = Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2]) }
            } else {
                let part = rest.prefix(left)
                payload += part.prefix(Self.kept - min(Self.kept, payload.count))
                left -= part.count
                position += part.count
                rest = rest.dropFirst(part.count)
            }
            if head.count == 9, left == 0 { finish(tell) }
        }
    }

    private mutating func finish(_ tell: (Frame) -> Void) {
        let stream = head[5...8].reduce(0) { $0 << 8 | Int32($1) }
        tell(Frame(type: head[3], flags: head[4], stream: stream, payload: payload, end: position))
        head = []
        payload = []
    }
}
