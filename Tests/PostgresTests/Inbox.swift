import EventLoop

/// What callbacks report, for a test that awaits it one by one.
final class Inbox<Element: Sendable>: Sendable {
    private struct State {
        var elements: [Element] = []
        var waiter: CheckedContinuation<Element, Never>?
    }

    private let state = Guarded(State())

    func put(_ element: Element) {
        let waiter = state.withLock { state -> CheckedContinuation<Element, Never>? in
            guard let waiter = state.waiter else {
                state.elements.append(element)
                return nil
            }
            state.waiter = nil
            return waiter
        }
        waiter?.resume(returning: element)
    }

    func next() async -> Element {
        await withCheckedContinuation { continuation in
            let element = state.withLock { state -> Element? in
                guard state.elements.isEmpty else { return state.elements.removeFirst() }
                state.waiter = continuation
                return nil
            }
            if let element { continuation.resume(returning: element) }
        }
    }
}
