import EventLoop
import Foundation
import OutboxCore
import Support
import Testing

/// A wait may begin by a hop, after which the task is queued on its loop anew.
@Suite(.timeLimit(.minutes(2)))
struct HookWaitTests {
    /// Ends each turn of the loop so late that the answers to what was asked in it are there.
    private final class SlowTurns: EndOfTurnHandler {
        private let last = ContinuousClock.now + .seconds(1)

        func turnEnded() {
            usleep(2000)
            if ContinuousClock.now < last { DatabaseServer.loop.atEndOfTurn(self) }
        }
    }

    /// The wait for it begins by a hop, and the loop may look at its sockets in between.
    @Test(arguments: DatabaseServer.allCases)
    func `An answer that is there before the wait for it has begun is heard`(server: DatabaseServer) async throws {
        try await HookTests.asking(server) { _, store, ids in
            for _ in 0..<10 {
                await Task(executorPreference: DatabaseServer.loop) { SlowTurns().turnEnded() }.value
                for _ in 0..<20 {
                    let answer = try await HookTests.answer(store, ids).get()
                    #expect(Set(answer) == Set(ids))
                }
            }
        }
    }
}
