/// What a client has read and written on one connection, frame by frame: the evidence against it from its own side.
///
/// A client that could write all it had, always, has nothing in its buffers at the end of a turn; only then what it
/// writes tells what it knew, and only then it is held to it.
final class ClientView {
    private let number: Int
    private unowned let network: PipeNetwork
    private var reading = FrameScanner()
    private var writing = FrameScanner(preface: 24)

    /// Bytes read.
    private(set) var readCount = 0
    /// Bytes read before this turn of the loop.
    private(set) var readBefore = 0
    private var open: Set<Int32> = [] {
        didSet { if open.isEmpty, !oldValue.isEmpty { emptySince = network.clock } }
    }
    private var emptySince: Int64 = -1
    private var halfClosed: Set<Int32> = []
    private var limit = 1
    private(set) var goAways = 0
    /// Requests whose HEADERS was written.
    private(set) var requests = 0
    private(set) var pings = 0
    private var lastReadAt: Int64 = 0
    private var busySince: Int64 = 0
    private(set) var hasFailedWrite = false
    /// Whether anything could ever not be written at once.
    private(set) var wasBlocked = false
    var isBlocked = false { didSet { if isBlocked { wasBlocked = true } } }

    init(_ number: Int, _ network: PipeNetwork) {
        self.number = number
        self.network = network
    }

    func turnBegins() {
        readBefore = readCount
    }

    func writeFailed() {
        hasFailedWrite = true
    }

    // MARK: Read

    func read(_ bytes: ArraySlice<UInt8>) {
        readCount += bytes.count
        lastReadAt = network.clock
        reading.take(bytes) { frame in
            switch frame.type {
            case FrameScanner.Frame.settings where !frame.isAcknowledgement: settings(frame)
            case FrameScanner.Frame.goAway: goAway(frame)
            case FrameScanner.Frame.reset: open.remove(frame.stream)
            case _ where frame.endsStream: ended(frame.stream)
            default: break
            }
        }
    }

    private func settings(_ frame: FrameScanner.Frame) {
        if limit == 1, !hasSettings { limit = .max }
        hasSettings = true
        for place in stride(from: 0, to: frame.payload.count, by: 6)
        where frame.payload[place] == 0 && frame.payload[place + 1] == 3 {
            limit = Int(frame.number(at: place + 2))
        }
    }

    private var hasSettings = false

    private func goAway(_ frame: FrameScanner.Frame) {
        goAways += 1
        let last = Int32(bitPattern: frame.number(at: 0) & 0x7FFF_FFFF)
        open = open.filter { $0 <= last }
    }

    private func ended(_ stream: Int32) {
        if halfClosed.remove(stream) != nil {
            open.remove(stream)
        } else if open.contains(stream) {
            answered.insert(stream)
        }
    }

    /// Answered before the request was whole.
    private var answered: Set<Int32> = []

    // MARK: Written

    func wrote(_ bytes: UnsafeBufferPointer<UInt8>) {
        writing.take(bytes) { frame in
            switch frame.type {
            case FrameScanner.Frame.headers: opened(frame.stream)
            case FrameScanner.Frame.reset: open.remove(frame.stream)
            case FrameScanner.Frame.ping where !frame.isAcknowledgement: pinged()
            default: break
            }
            if frame.endsStream, open.contains(frame.stream) {
                if answered.remove(frame.stream) != nil {
                    open.remove(frame.stream)
                } else {
                    halfClosed.insert(frame.stream)
                }
            }
        }
    }

    private func opened(_ stream: Int32) {
        requests += 1
        // One that follows at once upon the end of another leaves no gap.
        if open.isEmpty, emptySince < network.clock { busySince = network.clock }
        if !wasBlocked {
            if !hasSettings { found("early", "before the peer's SETTINGS") }
            if goAways > 0 { found("after GOAWAY", "stream \(stream)") }
            if open.count >= limit { found("too many streams", "\(open.count + 1) of \(limit)") }
        }
        open.insert(stream)
    }

    private func pinged() {
        pings += 1
        let plan = network.plan
        let silence = network.clock - max(lastReadAt, open.isEmpty ? 0 : busySince)
        // One that takes no request although some wait is asked for a sign of life, too.
        let isIdle = open.isEmpty && network.monitor.waitedAt < lastReadAt
        let least = isIdle ? plan.idlePing : plan.pingAfter
        // Streams may have ended between the decision and the writing of a client that was held up.
        if !wasBlocked, silence < min(least, plan.idlePing) { found("ping", "after \(silence) µs of \(least)") }
    }

    private func found(_ rule: String, _ detail: String) {
        network.monitor.found(rule, "connection \(number): \(detail)")
    }
}
