import Testing

@testable import EventLoop

/// The heap of timers against a list that is searched in full.
@Suite
struct TimerQueueTests {
    /// xorshift64*, so that a seed gives the same steps everywhere.
    private struct Generator: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state ^= state >> 12
            state ^= state << 25
            state ^= state >> 27
            return state &* 0x2545_F491_4F6C_DD1D
        }
    }

    @Test(arguments: [UInt64.random(in: 1...UInt64.max)] + Array(1...20))
    func `Whatever is armed and cancelled, timers surface in order`(seed: UInt64) {
        var random = Generator(state: seed)
        let start = ContinuousClock.now
        var queue = TimerQueue()
        var model: [(due: ContinuousClock.Instant, id: TimerID, label: Int)] = []
        var fired: [Int] = []
        for step in 0..<2000 {
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<6:
                let due = start + .milliseconds(Int.random(in: 0..<100, using: &random))
                let id = queue.arm(due: due) { fired.append(step) }
                model.append((due, id, step))
            case 6..<8:
                guard let victim = model.indices.randomElement(using: &random) else { continue }
                queue.cancel(model[victim].id)
                queue.cancel(model[victim].id)
                model.remove(at: victim)
            default:
                let now = start + .milliseconds(Int.random(in: 0..<100, using: &random))
                let next = model.indices.min { (model[$0].due, $0) < (model[$1].due, $1) }
                #expect(queue.earliest() == next.map { model[$0].due }, "seed \(seed)")
                let fire = queue.popDue(at: now)
                let expected = next.flatMap { model[$0].due <= now ? model.remove(at: $0).label : nil }
                fired.removeAll()
                fire?()
                #expect(fired == (expected.map { [$0] } ?? []), "seed \(seed)")
            }
        }
    }

    @Test
    func `Cancelled timers do not gather`() {
        var queue = TimerQueue()
        let due = ContinuousClock.now + .seconds(3600)
        _ = queue.arm(due: due) {}
        for _ in 0..<10_000 {
            let timer = queue.arm(due: due) {}
            queue.cancel(timer)
        }
        #expect(queue.storedCount < 200)
        #expect(queue.earliest() == due)
    }
}
