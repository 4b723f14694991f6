/// What happens in a run, by virtual time and, at the same time, in the order in which it was asked for: a binary heap.
package struct EventQueue {
    /// One thing that happens.
    package struct Event {
        /// Microseconds from the beginning of the run.
        package fileprivate(set) var at: Int64
        let order: Int
        /// Which worker it happens to, and in which of its lives; -1 for nobody.
        let worker: Int
        let life: Int
        /// What happens.
        package let run: () -> Void
    }

    private var heap: [Event] = []
    private var count = 0

    /// When something happens next; nil for never.
    package var nextAt: Int64? { heap.first?.at }

    /// Nothing is to happen.
    package init() {}

    /// Lets something happen at a time, in microseconds from the beginning, to a worker in one of its lives.
    package mutating func push(at: Int64, worker: Int = -1, life: Int = 0, _ run: @escaping () -> Void) {
        count += 1
        insert(Event(at: at, order: count, worker: worker, life: life, run: run))
    }

    /// The same event at a later time; it keeps its place among those of the same time.
    mutating func delay(_ event: Event, until at: Int64) {
        var later = event
        later.at = at
        insert(later)
    }

    /// Takes what happens next.
    package mutating func pop() -> Event? {
        guard let first = heap.first else { return nil }
        let last = heap.removeLast()
        guard !heap.isEmpty else { return first }
        heap[0] = last
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count && isEarlier(child, least) {
                least = child
            }
            guard least != parent else { return first }
            heap.swapAt(parent, least)
            parent = least
        }
    }

    private mutating func insert(_ event: Event) {
        heap.append(event)
        var child = heap.count - 1
        while child > 0, isEarlier(child, (child - 1) / 2) {
            heap.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    private func isEarlier(_ left: Int, _ right: Int) -> Bool {
        heap[left].at == heap[right].at ? heap[left].order < heap[right].order : heap[left].at < heap[right].at
    }
}
