import OutboxCore
import Testing

@Suite struct PendingWatchTests {
    let start = ContinuousClock.now

    private func pending(_ number: UInt64) -> LongPending {
        LongPending(
            notification: Identifier(high: number, low: 1), route: 3, kind: "note",
            createdAt: DispatchScene.start, age: .seconds(600), claimant: nil)
    }

    @Test func eachNotificationIsWarnedAboutOncePerInterval() {
        var watch = PendingWatch(interval: .seconds(300))
        #expect(watch.news([pending(1), pending(2)], at: start).count == 2)
        let second = watch.news([pending(1), pending(2), pending(3)], at: start + .seconds(30))
        #expect(second.map(\.notification.high) == [3])
        let third = watch.news([pending(1), pending(3)], at: start + .seconds(300))
        #expect(third.map(\.notification.high) == [1], "the interval of the third has not passed")
    }

    @Test func itsMemoryIsBounded() {
        var watch = PendingWatch(interval: .seconds(86_400))
        for number in 0..<UInt64(PendingWatch.memory) { _ = watch.news([pending(number)], at: start) }
        #expect(watch.news([pending(1)], at: start).isEmpty)
        _ = watch.news([pending(5_000)], at: start)
        #expect(watch.news([pending(1)], at: start).count == 1, "beyond it what is old is warned about again")
    }

    @Test func looksOftenEnoughForItsInterval() {
        #expect(PendingWatch(interval: .seconds(60)).pause == .seconds(12))
        #expect(PendingWatch(interval: .seconds(86_400)).pause == .seconds(30))
    }
}
