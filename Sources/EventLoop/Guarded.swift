import Synchronization

/// A value behind a lock, as `Mutex` is, in a way that Thread Sanitizer can follow.
///
/// Where `Mutex` meets contention it is taken inside the standard library, which is not instrumented, so the sanitizer
/// sees no order between two critical sections and reports races that are none. The counter here says the same order
/// once more in code that it sees; it costs two uncontended atomic operations.
package struct Guarded<Value>: ~Copyable, Sendable {
    private let mutex: Mutex<Value>
    private let order = Atomic<UInt>(0)

    /// Guards `value` from now on.
    package init(_ value: sending Value) {
        mutex = Mutex(value)
    }

    /// Passes the value to `body`, one caller at a time. `body` must neither wait nor take the same lock.
    package borrowing func withLock<Outcome, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Outcome
    ) throws(Failure) -> sending Outcome {
        try mutex.withLock { (value) throws(Failure) in
            _ = order.load(ordering: .acquiring)
            defer { order.wrappingAdd(1, ordering: .releasing) }
            return try body(&value)
        }
    }
}
