import Foundation
import Postgres
import Support
import Testing

/// A login without any right that notifies the workers' channel, as PostgreSQL lets everybody do.
@Suite(.serialized, .timeLimit(.minutes(5))) struct FloodTests {
    /// Notifies until it is told to stop, each time in a transaction of its own; answers how many that were.
    private static func flood(_ stage: Stage, login: String, until stop: Flag) async throws -> Int {
        let session = try await stage.database.connect(login: login)
        var sent = 0
        while await !stop.isRaised {
            try await session.execute(
                """
                DO $$ BEGIN
                    FOR n IN 1..200 LOOP
                        PERFORM pg_catalog.pg_notify('postbell', repeat('x', 7000) || n);
                        COMMIT;
                    END LOOP;
                END $$
                """)
            sent += 200
        }
        await session.close()
        return sent
    }

    private actor Flag {
        private(set) var isRaised = false
        func raise() { isRaised = true }
    }

    @Test(arguments: DatabaseServer.allCases)
    func `A login without rights that floods the channel holds up no notification`(server: DatabaseServer) async throws
    {
        try await Stage.on(server) { stage in
            let login = "flood_\(stage.database.name)"
            try await stage.run("CREATE ROLE \(login) LOGIN")
            try await stage.register("ada", token: "0a0b0c0d")
            try await stage.enqueue("ada", key: "first")
            let worker = try stage.startWorker()
            try await stage.waitFor("first", "dispatched")
            let stop = Flag()
            async let sent = Self.flood(stage, login: login, until: stop)
            for number in 1...20 {
                try await stage.enqueue("ada", key: "k\(number)")
                try await stage.waitFor("k\(number)", "dispatched")
            }
            await stop.raise()
            #expect(try await sent > 400, "there was a flood")
            #expect(worker.isRunning)
            #expect(worker.errors.contains("session is down") == false, "\(worker.errors)")
            #expect(worker.errors.contains("xxxx") == false, "what it said is nowhere")
            #expect(try await worker.stop() == 0)
            #expect(try await stage.audit() == [])
            try await stage.run("DROP ROLE \(login)")
        }
    }
}
