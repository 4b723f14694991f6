import CNGHTTP2

/// A request that has been submitted and has no result yet, in memory that stays where it is: nghttp2 keeps its address
/// as the stream's user data, so that no look-up is needed between a frame and its request.
typealias RequestPointer = UnsafeMutablePointer<RequestSlot>

/// Where a request stands.
enum RequestPhase: UInt8 {
    /// The slot holds no request.
    case free
    /// Not sent; in the waiting list.
    case waiting
    /// Handed to a connection. From here on bytes may have left, so without an answer it is *unanswered*.
    case sent
}

/// All that is known of one request. Plain memory: copied by nobody, allocated once for many requests.
struct RequestSlot {
    /// Neighbours in one of the table's lists.
    struct Links {
        var previous: RequestPointer?
        var next: RequestPointer?
    }

    var phase = RequestPhase.free
    /// How often it was handed to a connection.
    var tries: UInt8 = 0
    /// The answer is whole: its END_STREAM has come.
    var isComplete = false
    /// The final HEADERS has come, so that further headers are trailers.
    var hasHeaders = false
    /// HEADERS of an answer have come, be it an interim one: the peer has looked at the request.
    var answerHasBegun = false
    var bodyWasCut = false
    var isResetByPeer = false
    var afterIdle = false
    /// The last byte of the request's body went to nghttp2.
    var bodyIsSent = false

    /// Index of its batch in the table.
    var batch: Int32 = 0
    var streamID: Int32 = 0
    /// Number of the connection it was handed to.
    var connection = 0

    /// The request, its bytes and its shared headers: in the memory of its batch.
    let request: UnsafePointer<HTTPRequest>
    let bytes: UnsafePointer<UInt8>
    let headers: UnsafePointer<nghttp2_nv>
    let headerCount: Int
    var bodyOffset = 0

    let submittedAt: ContinuousClock.Instant
    var sentAt: ContinuousClock.Instant?

    /// 0 until a status has come.
    var status = 0
    /// Where the captured headers are in `buffer`.
    var captured = InlineArray<4, ByteSlice>(repeating: .empty)
    /// Where the body begins in `buffer`, behind the captured headers.
    var bodyStart = 0
    var buffer: ResponseBuffer

    var links = InlineArray<2, Links>(repeating: Links())

    /// A request that waits.
    init(
        _ request: UnsafePointer<HTTPRequest>, in batch: borrowing SubmittedBatch, index: Int32,
        buffer: ResponseBuffer, at now: ContinuousClock.Instant
    ) {
        self.request = request
        self.batch = index
        self.buffer = buffer
        bytes = batch.bytes
        let shared = Int(request.pointee.shared)
        headers = batch.headers + batch.headerStart(shared)
        headerCount = batch.headerCount(shared)
        submittedAt = now
        phase = .waiting
    }

    /// Whether the right to send it has ended.
    func isOverdue(at now: ContinuousClock.Instant) -> Bool {
        request.pointee.sendBy.map { $0 <= now } ?? false
    }

    /// Forgets what a try has brought, before another one.
    mutating func beginAgain() {
        isComplete = false
        hasHeaders = false
        answerHasBegun = false
        bodyWasCut = false
        isResetByPeer = false
        bodyIsSent = false
        bodyOffset = 0
        streamID = 0
        forgetAnswer()
    }

    /// Forgets an interim answer.
    mutating func forgetAnswer() {
        status = 0
        bodyStart = 0
        captured = InlineArray(repeating: .empty)
        buffer.count = 0
    }
}

/// Bytes of an answer until it is whole: captured headers, then the body. Belongs to a slot and is used again by the
/// slot's next request.
struct ResponseBuffer {
    private(set) var start: UnsafeMutablePointer<UInt8>?
    private var capacity = 0
    var count = 0

    /// A buffer without memory.
    init() {}

    /// Capacity that an unused buffer may keep.
    private static let keptCapacity = 1024

    mutating func append(_ bytes: UnsafePointer<UInt8>, count added: Int) {
        guard added > 0 else { return }
        if count + added > capacity { grow(to: count + added) }
        start?.advanced(by: count).update(from: bytes, count: added)
        count += added
    }

    private mutating func grow(to needed: Int) {
        let size = max(256, needed, capacity * 2)
        let larger = UnsafeMutablePointer<UInt8>.allocate(capacity: size)
        if let start {
            larger.update(from: start, count: count)
            start.deallocate()
        }
        start = larger
        capacity = size
    }

    /// Empties it for another request, and gives memory back that one large answer has needed.
    mutating func recycle() {
        count = 0
        if capacity > Self.keptCapacity { release() }
    }

    mutating func release() {
        start?.deallocate()
        start = nil
        capacity = 0
    }
}
