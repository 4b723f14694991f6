import EventLoop
import Postgres
import Support
import Testing

/// LISTEN that survives what happens to its session.
@Suite(.timeLimit(.minutes(2)))
struct NotificationChannelTests {
    private static let backoff = ReconnectBackoff(base: .milliseconds(2), cap: .milliseconds(16))

    private struct Listening {
        let channel: NotificationChannel
        private let events = Inbox<NotificationEvent>()

        init(_ channels: [String], heartbeat: Duration = .seconds(5), heartbeatDeadline: Duration = .seconds(3)) {
            channel = NotificationChannel(
                channels, on: TestServer.loop, heartbeat: heartbeat, heartbeatDeadline: heartbeatDeadline
            ) { [events] in events.put($0) }
        }

        func next() async -> String {
            switch await events.next() {
            case .listening: "listening"
            case .notified(let channel): "notified \(channel)"
            case .lost(let reason, _): "lost: \(reason.sqlState?.code ?? "\(reason.kind)")"
            }
        }
    }

    @Test(arguments: TestServer.allCases)
    func `Notifications arrive, whatever the channel's name and payload`(server: TestServer) async throws {
        let names = ["plain \(server)", "with \"quotes\" \(server)"]
        let listening = Listening(names)
        try await listening.channel.start(server.configuration())
        #expect(await listening.next() == "listening")
        for name in names {
            try await server.withConnection { connection in
                let notify = PostgresStatement("notify", "SELECT pg_notify($1, 'x')", parameterTypes: [.text])
                var parameters = PostgresParameters()
                parameters.append(name)
                _ = try await connection.query(notify, parameters)
            }
            #expect(await listening.next() == "notified \(name)")
        }
        await listening.channel.stop()
    }

    @Test(arguments: TestServer.allCases)
    func `A terminated listener listens again and says so`(server: TestServer) async throws {
        let listening = Listening(["phoenix"])
        try await listening.channel.start(
            server.configuration(adding: "application_name=phoenix"), backoff: Self.backoff)
        #expect(await listening.next() == "listening")
        try await server.withConnection { connection in
            try await connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'phoenix'")
        }
        #expect(await listening.next() == "lost: 57P01")
        #expect(await listening.next() == "listening")
        try await server.withConnection { try await $0.execute("NOTIFY phoenix") }
        #expect(await listening.next() == "notified phoenix")
        await listening.channel.stop()
    }

    @Test(arguments: TestServer.allCases)
    func `The heartbeat notices a connection that is open and dead`(server: TestServer) async throws {
        let proxy = try Proxy(to: server.socketPath())
        var configuration = try server.configuration(adding: "host=127.0.0.1 port=\(proxy.port)")
        configuration.cancelGrace = .milliseconds(50)
        let listening = Listening(
            ["beat"], heartbeat: .milliseconds(20), heartbeatDeadline: .milliseconds(100))
        await listening.channel.start(configuration, backoff: Self.backoff)
        #expect(await listening.next() == "listening")
        proxy.freeze()
        #expect(await listening.next() == "lost: deadline")
        proxy.thaw()
        // On a slow machine the heartbeat may fail again in between.
        var event = ""
        while event != "notified beat" {
            event = await listening.next()
            if event == "listening" { try await server.withConnection { try await $0.execute("NOTIFY beat") } }
        }
        await listening.channel.stop()
        proxy.stop()
    }

    @Test(arguments: TestServer.allCases)
    func `The heartbeat opens no transaction that stays`(server: TestServer) async throws {
        let listening = Listening(["quiet"], heartbeat: .milliseconds(1))
        try await listening.channel.start(server.configuration(adding: "application_name=quiet"))
        #expect(await listening.next() == "listening")
        try await server.withConnection { connection in
            for _ in 0..<50 {
                let states = try await connection.value(
                    """
                    SELECT count(*) FROM pg_stat_activity
                    WHERE application_name = 'quiet' AND state LIKE 'idle in transaction%'
                    """)
                #expect(states == "0")
            }
        }
        await listening.channel.stop()
    }
}
