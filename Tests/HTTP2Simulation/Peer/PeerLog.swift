/// What a peer has written, frame by frame: all that a client can know of it.
struct PeerLog {
    private var scanner = FrameScanner()
    /// Requests by their streams.
    private(set) var records: [Int32: PeerRecord] = [:]
    /// The last streams of GOAWAYs, and where these end.
    private var goAways: [(last: Int32, end: Int)] = []

    mutating func add(_ record: PeerRecord) {
        records[record.stream] = record
        for goAway in goAways where record.stream > goAway.last { disclaim(record, goAway.end) }
    }

    /// Takes what the peer has written.
    mutating func wrote(_ bytes: [UInt8]) {
        var scanner = scanner
        scanner.take(bytes) { frame in
            let record = records[frame.stream]
            switch frame.type {
            case FrameScanner.Frame.headers where record?.headersEnd == nil:
                record?.headersEnd = frame.end
            case FrameScanner.Frame.reset where frame.number(at: 0) == 7:
                if let record { disclaim(record, frame.end) }
            case FrameScanner.Frame.goAway:
                let last = Int32(bitPattern: frame.number(at: 0) & 0x7FFF_FFFF)
                goAways.append((last, frame.end))
                for record in records.values where record.stream > last { disclaim(record, frame.end) }
            default:
                break
            }
            if frame.endsStream, record?.answerEnd == nil { record?.answerEnd = frame.end }
        }
        self.scanner = scanner
    }

    private func disclaim(_ record: PeerRecord, _ end: Int) {
        if record.disclaimerEnd == nil, record.answerEnd == nil { record.disclaimerEnd = end }
    }
}
