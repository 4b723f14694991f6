import CLibPQ
import EventLoop

/// Where the deadline of the statement under way stands.
///
/// States: running (→ expired at the deadline); expired (→ over when the server answers, or when the grace has passed
/// and the connection is dropped).
struct StatementDeadline {
    /// Counts the statements, so that what was begun for one never touches another.
    var number = 0
    /// Fires at the deadline, then at the end of the grace.
    var timer: TimerID?
    /// The deadline has passed and the server was asked to cancel.
    var isExpired = false
    /// The request to cancel has not come back. Until then the next statement must wait, or it would be cancelled.
    var isRequesting = false
    /// Who waits for the request to come back.
    var waiter: UnsafeContinuation<Void, Never>?
}

extension PostgresConnection {
    func startDeadline(_ name: String, at instant: ContinuousClock.Instant) {
        deadline.number += 1
        deadline.timer = loop.arm(at: instant) { [weak self] in
            self?.assumeIsolated { $0.expire(name) }
        }
    }

    /// Returns when nothing of the deadline can touch the next statement any more.
    func endDeadline() async {
        if deadline.isRequesting && wire.isOpen {
            await withUnsafeContinuation { continuation in
                // It may have come back meanwhile: the operation may begin by a hop.
                if deadline.isRequesting && wire.isOpen {
                    deadline.waiter = continuation
                } else {
                    continuation.resume()
                }
            }
        }
        if let timer = deadline.timer { loop.cancel(timer) }
        deadline.timer = nil
        deadline.isExpired = false
    }

    private func expire(_ name: String) {
        guard wire.isOpen else { return }
        deadline.isExpired = true
        deadline.timer = loop.arm(at: .now + configuration.cancelGrace) { [weak self] in
            self?.assumeIsolated { $0.abandon(name) }
        }
        let number = deadline.number
        Task(executorPreference: loop) { await self.requestCancel(number) }
    }

    /// Asks until the statement ends or the grace has passed: a request that overtakes its statement has no effect.
    private func requestCancel(_ number: Int) async {
        while deadline.number == number, deadline.isExpired, wire.isOpen {
            deadline.isRequesting = true
            await sendCancel(wire.makeCancelHandle())
            deadline.isRequesting = false
            resumeWaiter()
            try? await loop.sleep(for: configuration.cancelGrace / 8)
        }
    }

    /// `PQcancel` makes a connection of its own and blocks until the server has closed it, by which time the signal to
    /// the backend has been sent. A server that accepts and says nothing holds it for ever, so it runs on threads of
    /// its own, where the loop's other work does not wait behind it; those that hang are few, and then nothing is asked
    /// any more: the grace passes and the connection is dropped.
    private func sendCancel(_ handle: UInt) async {
        guard cancelThreads.backlog < cancelBacklogLimit else { return PQfreeCancel(OpaquePointer(bitPattern: handle)) }
        try? await loop.offload(to: cancelThreads) {
            var message = [CChar](repeating: 0, count: 256)
            let cancel = OpaquePointer(bitPattern: handle)
            // An unsuccessful request shows in the statement going on, which the grace bounds.
            _ = PQcancel(cancel, &message, Int32(message.count))
            PQfreeCancel(cancel)
        }
    }

    private func abandon(_ name: String) {
        wire.end(
            PostgresError(
                .deadline, operation: name,
                message: "no answer by the deadline, nor to a cancel request; the connection was dropped",
                mayHaveRun: true))
        resumeWaiter()
    }

    private func resumeWaiter() {
        deadline.waiter?.resume()
        deadline.waiter = nil
    }
}

/// For the whole process: most cancel requests at one time.
private let cancelThreads = ThreadPool(threads: 4)

/// Most cancel requests that wait for one of those threads.
private let cancelBacklogLimit = 16
