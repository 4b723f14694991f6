/// Names a timer that was armed, so that it can be cancelled. Never reused within a loop.
package struct TimerID: Hashable, Sendable {
    let number: UInt64

    /// The name of timer `number` of whoever keeps it.
    package init(number: UInt64) {
        self.number = number
    }
}

/// Timers by due instant: a binary heap, with cancelled ones left in it until they surface or outnumber the live ones.
///
/// Confined to the loop's thread.
struct TimerQueue {
    private struct Entry {
        var due: ContinuousClock.Instant
        var number: UInt64
        var fire: () -> Void
    }

    private var heap: [Entry] = []
    private var live: Set<UInt64> = []
    private var next: UInt64 = 0

    /// Arms a timer. Timers due at one instant fire in the order in which they were armed.
    mutating func arm(due: ContinuousClock.Instant, fire: @escaping () -> Void) -> TimerID {
        next += 1
        live.insert(next)
        heap.append(Entry(due: due, number: next, fire: fire))
        siftUp(heap.count - 1)
        return TimerID(number: next)
    }

    /// Forgets a timer; one that fired already, or is unknown, changes nothing.
    mutating func cancel(_ timer: TimerID) {
        guard live.remove(timer.number) != nil else { return }
        // Most deadlines are cancelled long before they are due; what they hold on to must not gather until then.
        if heap.count > Self.compactAbove && heap.count > 2 * live.count { compact() }
    }

    /// How many entries lie in the heap, cancelled ones included.
    var storedCount: Int { heap.count }

    private static let compactAbove = 64

    private mutating func compact() {
        heap.removeAll { !live.contains($0.number) }
        for parent in (0..<heap.count / 2).reversed() { siftDown(parent) }
    }

    /// The instant of the earliest timer that was not cancelled.
    mutating func earliest() -> ContinuousClock.Instant? {
        while let first = heap.first {
            if live.contains(first.number) { return first.due }
            removeFirst()
        }
        return nil
    }

    /// Takes the earliest timer if it is due at `now`, and answers what to call.
    mutating func popDue(at now: ContinuousClock.Instant) -> (() -> Void)? {
        guard let due = earliest(), due <= now else { return nil }
        let entry = removeFirst()
        live.remove(entry.number)
        return entry.fire
    }

    private static func before(_ left: Entry, _ right: Entry) -> Bool {
        left.due == right.due ? left.number < right.number : left.due < right.due
    }

    @discardableResult
    private mutating func removeFirst() -> Entry {
        heap.swapAt(0, heap.count - 1)
        let entry = heap.removeLast()
        siftDown(0)
        return entry
    }

    private mutating func siftUp(_ start: Int) {
        var child = start
        while child > 0 {
            let parent = (child - 1) / 2
            guard Self.before(heap[child], heap[parent]) else { return }
            heap.swapAt(child, parent)
            child = parent
        }
    }

    private mutating func siftDown(_ start: Int) {
        var parent = start
        while true {
            var smallest = parent
            for child in [2 * parent + 1, 2 * parent + 2]
            where child < heap.count && Self.before(heap[child], heap[smallest]) {
                smallest = child
            }
            guard smallest != parent else { return }
            heap.swapAt(parent, smallest)
            parent = smallest
        }
    }
}
