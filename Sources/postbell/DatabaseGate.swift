import EventLoop
import Operations
import OutboxCore
import OutboxPostgres
import Postgres
import Telemetry

/// What stands between the start of a worker and its work: a database that answers, and a schema that it knows.
///
/// Everything but a wrong schema and wrong connection parameters is waited out, and the log says what it waits for: at
/// once, and again when the reason changes or a minute has passed.
struct DatabaseGate {
    let database: PostgresConfiguration
    let environment: DispatchEnvironment
    let stopSignal: StopSignal

    private static let backoff = ReconnectBackoff(base: .milliseconds(250), cap: .seconds(5))

    /// Waits for a database with this program's schema; false when the worker was told to stop meanwhile. Throws when
    /// the schema is too old or too new, or libpq cannot use the connection's parameters.
    func schemaIsCurrent() async throws(CommandFailure) -> Bool {
        var complaint = Complaint(log: environment.log)
        var failures = 0
        let (database, loop) = (database, environment.loop)
        while let look = await stopSignal.value(of: { await Self.look(database, on: loop) }) {
            switch look {
            case .revision(let revision):
                if let failure = CommandFailure(revision, place: environment.databasePlace) { throw failure }
                return true
            case .misconfigured(let error):
                throw CommandFailure(error, place: environment.databasePlace)
            case .unreachable(let cause, let state):
                complaint.say(cause, state)
            }
            failures += 1
            await pause(failures)
        }
        return false
    }

    /// Waits for the store's own sessions and answers the database's time; nil when the worker was told to stop.
    func time(of store: PostgresOutboxStore) async -> Timestamp? {
        var complaint = Complaint(log: environment.log)
        var failures = 0
        while let answer = await stopSignal.value(of: { await Self.ask(store) }) {
            switch answer {
            case .success(let time): return time
            case .failure(let error): complaint.say(error.message, error.sqlState)
            }
            failures += 1
            await pause(failures)
        }
        return nil
    }

    private enum Look: Sendable {
        case revision(SchemaRevision)
        /// No waiting helps.
        case misconfigured(PostgresError)
        case unreachable(cause: String, state: String)
    }

    private static func ask(_ store: PostgresOutboxStore) async -> Result<Timestamp, StoreError> {
        do throws(StoreError) {
            return .success(try await store.waitingWork(on: []).now)
        } catch {
            return .failure(error)
        }
    }

    private static func look(_ database: PostgresConfiguration, on loop: EventLoop) async -> Look {
        let connection: PostgresConnection
        do throws(PostgresError) {
            connection = try await PostgresConnection.connect(database, on: loop)
        } catch {
            if error.kind == .configuration { return .misconfigured(error) }
            return .unreachable(cause: error.message, state: error.sqlState?.code ?? "")
        }
        do throws(MigrationError) {
            let revision = try await SchemaRevision.read(from: connection)
            await connection.close()
            return .revision(revision)
        } catch {
            await connection.close()
            return .unreachable(cause: error.description, state: "")
        }
    }

    private func pause(_ failures: Int) async {
        let wait = Self.backoff.delay(afterFailures: failures, random: Double.random(in: 0..<1))
        await stopSignal.pause(for: wait)
    }

    /// What is said while waiting.
    private struct Complaint {
        let log: LogWriter
        private var trouble = RepeatedTrouble()

        init(log: LogWriter) {
            self.log = log
        }

        mutating func say(_ cause: String, _ state: String) {
            guard trouble.isNews(cause, at: .now) else { return }
            log.warning("waiting for the database", [.cause: .text(cause), .sqlstate: .text(state)])
        }
    }
}
