import EventLoop
import Glibc

/// Connects by TCP to whichever of several addresses answers first (RFC 8305).
///
/// The next address is tried a short while after the one before, or at once when that one fails, and the ones before it
/// go on meanwhile: a dead first address costs the delay and not a timeout. The first to connect wins, and the sockets
/// of the others are closed. It has no end of its own: whoever starts it cancels it at the connect timeout.
///
/// Confined to the loop's thread.
final class AddressRace {
    /// A connected socket, which the receiver owns, and the address it leads to.
    struct Winner {
        let descriptor: Int32
        let address: SocketAddress
    }

    private let loop: EventLoop
    private let delay: Duration
    private var waiting: ArraySlice<SocketAddress>
    private var attempts: [Attempt] = []
    private var failures: [(address: SocketAddress, reason: String)] = []
    private var timer: TimerID?
    private let finish: (Winner?) -> Void

    /// More than that many addresses of one host are not tried: each may hold a socket until the connect timeout.
    static let addressesMax = 16

    /// A race that nobody has started. `finish` is called once, unless it is cancelled, with nil when no address
    /// answers.
    init(
        _ addresses: [SocketAddress], delay: Duration, on loop: EventLoop, finish: @escaping (Winner?) -> Void
    ) {
        self.loop = loop
        self.delay = delay
        self.finish = finish
        waiting = Self.interleaved(addresses).prefix(Self.addressesMax)
    }

    /// The addresses with their families in turns, beginning with that of the first one, and else in the resolver's
    /// order (RFC 8305 4): a family that leads nowhere holds up the other by one delay only.
    static func interleaved(_ addresses: [SocketAddress]) -> [SocketAddress] {
        let first = addresses.first?.family
        var own = addresses.filter { $0.family == first }[...]
        var other = addresses.filter { $0.family != first }[...]
        var result: [SocketAddress] = []
        while !own.isEmpty || !other.isEmpty {
            if let next = own.popFirst() { result.append(next) }
            if let next = other.popFirst() { result.append(next) }
        }
        return result
    }

    /// Tries the next address; ends the race when there is none and none is on its way.
    func start() {
        stopTimer()
        while let address = waiting.popFirst() {
            do throws(SocketFailure) {
                let attempt = Attempt(try TCPSocket.connecting(to: address), address, of: self)
                attempts.append(attempt)
                loop.watch(attempt.descriptor, for: .writable, handler: attempt)
                if !waiting.isEmpty {
                    timer = loop.arm(at: .now + delay) { [weak self] in self?.start() }
                }
                return
            } catch {
                failures.append((address, error.reason))
            }
        }
        if attempts.isEmpty { finish(nil) }
    }

    fileprivate func ended(_ attempt: Attempt) {
        loop.unwatch(attempt.descriptor)
        attempts.removeAll { $0 === attempt }
        if let reason = TCPSocket.failure(of: attempt.descriptor) {
            Glibc.close(attempt.descriptor)
            failures.append((attempt.address, reason))
            start()
        } else {
            cancel()
            finish(Winner(descriptor: attempt.descriptor, address: attempt.address))
        }
    }

    /// Closes whatever is on its way.
    func cancel() {
        stopTimer()
        for attempt in attempts {
            loop.unwatch(attempt.descriptor)
            Glibc.close(attempt.descriptor)
        }
        attempts = []
        waiting = []
    }

    private func stopTimer() {
        if let timer { loop.cancel(timer) }
        timer = nil
    }

    /// The only address of the host; nil when there are several.
    var onlyAddress: SocketAddress? {
        failures.count + attempts.count + waiting.count == 1
            ? failures.first?.address ?? attempts.first?.address ?? waiting.first : nil
    }

    /// What the race waits for, for messages.
    var progress: String { onlyAddress.map { "\($0): \(report)" } ?? report }

    /// What the addresses tried so far came to, for messages.
    var report: String {
        let tried = failures + attempts.map { ($0.address, "no answer") }
        guard let first = tried.first else { return "the host has no address" }
        guard tried.count > 1 else { return first.reason }
        let shown = tried.prefix(4).map { "\($0.address): \($0.reason)" }.joined(separator: ", ")
        return tried.count > 4 ? "\(shown) and \(tried.count - 4) more" : shown
    }
}

/// One address that is being connected to.
private final class Attempt: ReadinessHandler {
    let descriptor: Int32
    let address: SocketAddress
    private weak var race: AddressRace?

    init(_ descriptor: Int32, _ address: SocketAddress, of race: AddressRace) {
        self.descriptor = descriptor
        self.address = address
        self.race = race
    }

    func descriptorReady(_ ready: Interest) {
        race?.ended(self)
    }
}
