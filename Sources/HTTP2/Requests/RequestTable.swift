/// All requests without a result, in two lists: by age (every one of them, for the deadlines) and those that wait for
/// a stream. Adding, finding and removing one touches no allocator.
final class RequestTable {
    /// Most requests at a time.
    let capacity: Int
    private let slots: RequestPointer
    private var initialized = 0
    private var free: RequestPointer?
    private var batches: [SubmittedBatch?] = []
    private var freeBatches: [Int32] = []

    /// Every request, the one that was submitted first at the head.
    private(set) var all = RequestList(field: 0)
    /// Those that wait, in the order in which they shall be sent.
    private(set) var waiting = RequestList(field: 1)

    init(capacity: Int) {
        self.capacity = capacity
        slots = .allocate(capacity: capacity)
    }

    deinit {
        for index in 0..<initialized { slots[index].buffer.release() }
        for batch in batches { batch?.release() }
        slots.deallocate()
    }

    /// Adds the requests of `batch` to the end of the waiting list; answers how many at its beginning found room.
    func add(_ batch: borrowing HTTPRequestBatch, at now: ContinuousClock.Instant) -> Int {
        let count = min(batch.requests.count, capacity - all.count)
        guard count > 0 else { return 0 }
        var submitted = SubmittedBatch(batch)
        submitted.remaining = count
        let index = freeBatches.popLast() ?? Int32(batches.count)
        for number in 0..<count {
            let slot = makeSlot(submitted, submitted.requests + number, index, at: now)
            all.append(slot)
            waiting.append(slot)
        }
        if Int(index) == batches.count { batches.append(submitted) } else { batches[Int(index)] = submitted }
        return count
    }

    private func makeSlot(
        _ batch: SubmittedBatch, _ request: UnsafePointer<HTTPRequest>, _ index: Int32,
        at now: ContinuousClock.Instant
    ) -> RequestPointer {
        let slot: RequestPointer
        var buffer = ResponseBuffer()
        if let used = free {
            slot = used
            free = used.pointee.links[0].next
            buffer = used.pointee.buffer
        } else {
            slot = slots + initialized
            initialized += 1
        }
        slot.initialize(to: RequestSlot(request, in: batch, index: index, buffer: buffer, at: now))
        return slot
    }

    /// Takes a request out of the waiting list, to be sent.
    func take(_ slot: RequestPointer) {
        waiting.remove(slot)
        slot.pointee.phase = .sent
    }

    /// Puts a request that was not sent after all back to its place, the one of its age: the first that waits is always
    /// the oldest one.
    ///
    /// Those that are older and in flight are passed over, so a thousand that come back in their order cost a step
    /// each.
    func putBack(_ slot: RequestPointer) {
        slot.pointee.beginAgain()
        slot.pointee.phase = .waiting
        var older = all.previous(slot)
        while let next = older, next.pointee.phase != .waiting { older = all.previous(next) }
        waiting.insert(slot, after: older)
    }

    /// Forgets a request that has its result. Its bytes are gone afterwards.
    func remove(_ slot: RequestPointer) {
        if slot.pointee.phase == .waiting { waiting.remove(slot) }
        all.remove(slot)
        slot.pointee.phase = .free
        slot.pointee.buffer.recycle()
        slot.pointee.links[0].next = free
        free = slot
        let index = Int(slot.pointee.batch)
        batches[index]?.remaining -= 1
        if batches[index]?.remaining == 0 {
            batches[index]?.release()
            batches[index] = nil
            freeBatches.append(Int32(index))
        }
    }
}

/// A doubly linked list through the slots themselves.
struct RequestList {
    /// Which of a slot's links it uses.
    let field: Int
    private(set) var first: RequestPointer?
    private(set) var last: RequestPointer?
    private(set) var count = 0

    init(field: Int) {
        self.field = field
    }

    mutating func append(_ slot: RequestPointer) {
        slot.pointee.links[field] = RequestSlot.Links(previous: last, next: nil)
        if let last { last.pointee.links[field].next = slot } else { first = slot }
        last = slot
        count += 1
    }

    /// Inserts a slot behind another one of the list, or before all.
    mutating func insert(_ slot: RequestPointer, after place: RequestPointer?) {
        let next = place.map { $0.pointee.links[field].next } ?? first
        slot.pointee.links[field] = RequestSlot.Links(previous: place, next: next)
        if let next { next.pointee.links[field].previous = slot } else { last = slot }
        if let place { place.pointee.links[field].next = slot } else { first = slot }
        count += 1
    }

    mutating func remove(_ slot: RequestPointer) {
        let links = slot.pointee.links[field]
        if let previous = links.previous { previous.pointee.links[field].next = links.next } else { first = links.next }
        if let next = links.next { next.pointee.links[field].previous = links.previous } else { last = links.previous }
        count -= 1
    }

    /// The slot before `slot`, towards the head.
    func previous(_ slot: RequestPointer) -> RequestPointer? { slot.pointee.links[field].previous }

    /// The slot after `slot`.
    func next(_ slot: RequestPointer) -> RequestPointer? { slot.pointee.links[field].next }
}
