import OutboxCore
import Testing

/// What the worker takes for the database's time, by which it sees that a deadline has passed.
@Suite struct DatabaseClockTests {
    private let origin = ContinuousClock.now

    /// How far the clock lags behind a database whose clock was never set, in milliseconds, after a reading made
    /// `read` milliseconds after the start, asked and answered at these.
    private func lag(_ clock: inout DatabaseClock, _ read: Int, asked: Int, answered: Int) -> Int64 {
        clock.heard(
            DispatchScene.start + .milliseconds(read), askedAt: origin + .milliseconds(asked),
            answeredAt: origin + .milliseconds(answered))
        let time = clock.time(at: origin + .milliseconds(answered))
        return (DispatchScene.start + .milliseconds(answered) - time).wholeMicroseconds / 1000
    }

    private var fresh: DatabaseClock { DatabaseClock(reading: DispatchScene.start, at: origin) }

    @Test func anAnswerThatIsHeardLateDoesNotPutTheClockBack() {
        var clock = fresh
        #expect(lag(&clock, 100, asked: 99, answered: 1150) == 0, "stood still before the answer")
        #expect(lag(&clock, 5200, asked: 1200, answered: 5201) == 0, "the statement was slow")
        #expect(lag(&clock, 5210, asked: 5209, answered: 5211) == 0)
    }

    @Test func aLagEndsWithTheNextPromptAnswer() {
        var clock = DatabaseClock(reading: DispatchScene.start + .seconds(-3), at: origin)
        #expect(lag(&clock, 100, asked: 99, answered: 105) == 5, "as old as the reading, no more")
        var ahead = DatabaseClock(reading: DispatchScene.start + .seconds(3), at: origin)
        #expect(lag(&ahead, 100, asked: 99, answered: 105) == -1, "no later than its question explains")
    }

    @Test(arguments: [-20_000, 60_000]) func aClockThatWasSetIsFollowed(step: Int) {
        var clock = fresh
        clock.heard(
            DispatchScene.start + .milliseconds(1000 + step), askedAt: origin + .milliseconds(1000),
            answeredAt: origin + .milliseconds(1000))
        #expect(clock.time(at: origin + .seconds(2)) == DispatchScene.start + .milliseconds(2000 + step))
    }
}
