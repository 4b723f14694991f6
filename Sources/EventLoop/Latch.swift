/// What one task waits for, once. Confined to the loop.
///
/// An opening that comes before the wait has begun is not lost. That matters more than it seems: `await
/// withUnsafeContinuation` may begin by a hop, during which anything may happen that was looked for just before it. So
/// whoever waits on a condition looks at it in there, or waits for a latch.
package final class Latch {
    private var continuation: UnsafeContinuation<Void, Never>?
    private var isOpen = false

    /// One that is closed.
    package init() {}

    /// Returns when it is open. One task waits for a latch.
    package func wait() async {
        await withUnsafeContinuation { continuation in
            if isOpen { continuation.resume() } else { self.continuation = continuation }
        }
    }

    /// Opens it, for good; a second time changes nothing.
    package func open() {
        isOpen = true
        continuation?.resume()
        continuation = nil
    }
}
