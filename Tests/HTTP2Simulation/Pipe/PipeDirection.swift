/// One direction of a connection: bytes go in at one end and come out at the other, later, in order and in other
/// pieces, as long as it is not cut. It has room for so many and no more.
final class PipeDirection {
    /// How it ends for whoever reads.
    enum End {
        /// In order, when all that was sent has been read.
        case orderly
        /// By a reset.
        case reset
    }

    private unowned let network: PipeNetwork
    private let capacity: Int
    private let way: ClosedRange<Int>

    /// What has arrived and was not taken.
    private var arrived: [UInt8] = []
    private var front = 0
    private var lastArrival: Int64 = 0
    /// Raised by a cut: what is on its way then never arrives.
    private var era = 0
    /// Bytes that went in, those that came to the other end, and those that were taken out there.
    private(set) var sentCount = 0
    private(set) var arrivedCount = 0
    private(set) var takenCount = 0
    /// What goes in vanishes, and nobody is told.
    private(set) var isBlackHole = false
    private(set) var end: End?
    private var isEnding = false
    /// After how many bytes `onCut` is called, before another one arrives.
    var cutAfter = Int.max
    var onCut: () -> Void = {}
    /// Something can be read, or the end be seen.
    var onArrival: () -> Void = {}
    /// Something was taken.
    var onRoom: () -> Void = {}

    init(_ network: PipeNetwork, capacity: Int, way: ClosedRange<Int>) {
        self.network = network
        self.capacity = capacity
        self.way = way
    }

    /// Bytes that can be taken now.
    var available: Int { arrived.count - front }
    /// Bytes that may be sent now.
    var room: Int { max(0, capacity - (sentCount - takenCount)) }
    /// Whether whoever reads sees the end now.
    var isAtEnd: Bool { end != nil && available == 0 }

    // MARK: In

    /// Sends as much of `bytes` as there is room for.
    func send(_ bytes: UnsafeBufferPointer<UInt8>) -> Int {
        let count = min(bytes.count, room)
        guard count > 0 else { return 0 }
        sentCount += count
        guard !isBlackHole, !isEnding, end == nil else { return count }
        var rest = bytes.prefix(count)
        while !rest.isEmpty {
            let isCut = network.draw(0...2) == 0
            let piece = rest.prefix(isCut ? network.draw(1...rest.count) : rest.count)
            rest = rest.dropFirst(piece.count)
            travel(Array(piece))
        }
        return count
    }

    private func travel(_ bytes: [UInt8]) {
        lastArrival = max(network.clock + Int64(network.draw(way)), lastArrival + 1)
        let era = era
        network.schedule(after: lastArrival - network.clock) { [weak self] in
            guard let self, self.era == era else { return }
            arrive(bytes)
        }
    }

    private func arrive(_ bytes: [UInt8]) {
        let before = era
        let passing = min(bytes.count, max(0, cutAfter - arrivedCount))
        arrivedCount += passing
        arrived += bytes.prefix(passing)
        if passing < bytes.count || arrivedCount >= cutAfter {
            cutAfter = .max
            onCut()
        }
        if passing < bytes.count, era == before, !isBlackHole, end == nil {
            arrivedCount += bytes.count - passing
            arrived += bytes.dropFirst(passing)
        }
        onArrival()
    }

    /// Nothing is sent any more: whoever reads sees the end when all has arrived.
    func finish() {
        guard !isEnding, !isBlackHole else { return }
        isEnding = true
        lastArrival = max(network.clock + Int64(network.draw(way)), lastArrival + 1)
        let era = era
        network.schedule(after: lastArrival - network.clock) { [weak self] in
            guard let self, self.era == era else { return }
            end = .orderly
            onArrival()
        }
    }

    /// Ends it at once: what is on its way is lost, what has arrived can be read.
    func reset() {
        guard end == nil else { return }
        era += 1
        end = .reset
        onArrival()
    }

    /// Lets vanish what is on its way and what will be sent.
    func swallow() {
        era += 1
        isBlackHole = true
    }

    // MARK: Out

    /// Takes at most `count` bytes.
    func take(_ count: Int) -> [UInt8] {
        let taken = Array(arrived[front..<front + min(count, available)])
        front += taken.count
        takenCount += taken.count
        if front == arrived.count {
            arrived.removeAll(keepingCapacity: true)
            front = 0
        }
        if !taken.isEmpty { onRoom() }
        return taken
    }
}
