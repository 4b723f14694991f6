import CLinux
import Glibc

/// Delivers one POSIX signal to the loop as a call, however many threads the process has.
///
/// The handler itself only adds to an eventfd, which is all that is safe at an arbitrary moment.
package final class SignalSource: ReadinessHandler {
    private let signal: Int32
    private let loop: EventLoop
    private let descriptor: Int32
    private let received: (Int) -> Void

    /// From now on each arrival of `signal` (for example `SIGTERM`) calls `received` on the loop with the number of
    /// arrivals since the last call, instead of the signal's default action. Loop only.
    package init(_ signal: Int32, on loop: EventLoop, received: @escaping (_ count: Int) -> Void) {
        self.signal = signal
        self.loop = loop
        self.received = received
        descriptor = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        precondition(descriptor >= 0, "eventfd failed: errno \(errno)")
        let installed = clinux_signal_to_eventfd(signal, descriptor)
        precondition(installed == 0, "signal \(signal) cannot be handled: errno \(errno)")
        loop.watch(descriptor, for: .readable, handler: self)
    }

    /// Restores the signal's default action. Loop only.
    package func cancel() {
        _ = clinux_signal_to_eventfd(signal, -1)
        loop.unwatch(descriptor)
        close(descriptor)
    }

    /// Takes what arrived from the kernel and hands the count on.
    package func descriptorReady(_ ready: Interest) {
        var count: UInt64 = 0
        guard read(descriptor, &count, 8) == 8 else { return }
        received(Int(count))
    }
}
