import OutboxCore
import OutboxPostgres
import Postgres

/// The doctor's look at the database: step by step, as far as the steps before allow.
struct DatabaseExamination {
    private let configuration: Configuration
    private let providers: any ProviderInspector
    private let context: CommandContext
    private let place: String

    init(_ configuration: Configuration, _ providers: any ProviderInspector, _ context: CommandContext) {
        self.configuration = configuration
        self.providers = providers
        self.context = context
        place = context.place(of: configuration.database)
    }

    /// Opens a session in the worker's role and looks at everything behind it.
    func run() async -> [CheckItem] {
        let askedAt = ContinuousClock.now
        let connection: PostgresConnection
        do throws(PostgresError) {
            connection = try await PostgresConnection.connect(session("postbell check"), on: context.loop)
        } catch {
            return [CheckItem.failure(.database, CommandFailure(error, place: place))]
        }
        let took = DurationText.milliseconds(askedAt.duration(to: .now))
        var items: [CheckItem] = []
        do throws(PostgresError) {
            let facts = try await ServerFacts.read(from: connection)
            let role = facts.currentUser == facts.sessionUser ? "" : " as \(facts.currentUser)"
            items.append(.ok(.database, "session of \(facts.sessionUser)\(role) open after \(took); \(place)"))
            items.append(Self.version(facts))
            items.append(Self.primary(facts))
            items += try await behind(connection, facts)
        } catch {
            items.append(CheckItem.failure(.database, CommandFailure(error, place: place)))
        }
        await connection.close()
        return items
    }

    private func session(_ name: String) throws(PostgresError) -> PostgresConfiguration {
        var session = try PostgresConfiguration(configuration.database.connectionString)
        session.applicationName = name
        session.settings = [(name: "TimeZone", value: "UTC"), (name: "statement_timeout", value: "30s")]
        // So that a standby is named as what it is, and a proxy that pools transactions gets us as far as `wake`.
        session.acceptsReadOnly = true
        session.preparesStatements = false
        return session
    }

    private func behind(
        _ connection: PostgresConnection, _ facts: ServerFacts
    ) async throws(PostgresError) -> [CheckItem] {
        var items: [CheckItem] = []
        let schema = await schema(connection)
        items.append(schema)
        var lacksRights = false
        // Who may not even read the revision lacks rights: which, is said here.
        if schema.status == .ok || schema.code == .refused {
            let rights = try await RoleRights.read(from: connection)
            items += RightsExamination(role: facts.currentUser).judge(rights)
            lacksRights = !rights.missing.isEmpty
        }
        items.append(try await ClockExamination(lease: configuration.dispatch.lease).run(on: connection))
        if !facts.isInRecovery {
            let session = try session("postbell check wake")
            items.append(
                await WakeExamination(listens: configuration.dispatch.listens)
                    .run(on: session, notifyingBy: connection, place: place))
        }
        guard schema.status == .ok, !lacksRights else { return items }
        items.append(Self.kinds(try await CatalogSummary.read(from: connection)))
        items += Self.hooks(try await HookSummary.read(from: connection))
        let work = try await RouteWork.read(from: connection)
        let routes = RouteExamination(
            covers: { providers.covers($0, in: configuration) }, remedy: configuration.remedy(forUncovered:))
        return items + routes.judge(work)
    }

    private func schema(_ connection: PostgresConnection) async -> CheckItem {
        do throws(MigrationError) {
            let revision = try await SchemaRevision.read(from: connection)
            guard let failure = CommandFailure(revision, place: place) else {
                return .ok(.schema, "revision \(SchemaRevision.expected), as this program needs it")
            }
            return CheckItem.failure(.schema, failure)
        } catch {
            let failure = CommandFailure(error, place: place)
            guard failure.code == .refused else { return .failure(.schema, failure) }
            return .failure(
                .schema, .refused, "the role may not read the schema's revision; \(place)", next: "mend `rights` first")
        }
    }

    static func kinds(_ catalog: CatalogSummary) -> CheckItem {
        guard catalog.enabled > 0 else {
            return .warning(
                .kinds, "the catalog has no kind that is enabled: nothing can be enqueued",
                next: "declare kinds with postbell.define_kind")
        }
        guard catalog.unreadable.isEmpty else {
            return .warning(
                .kinds,
                "cannot be read by this program, so that its notifications wait: "
                    + catalog.unreadable.joined(separator: ", "),
                next: "install the version that declared it, or declare the kind with postbell.define_kind")
        }
        let names = catalog.raw.isEmpty ? "none" : catalog.raw.joined(separator: ", ")
        return .ok(.kinds, "enabled: \(catalog.enabled); raw, whose producers write the push themselves: \(names)")
    }

    static func hooks(_ summary: HookSummary) -> [CheckItem] {
        guard !summary.faults.isEmpty else {
            return [
                .ok(.hooks, summary.count == 0 ? "no kind has one" : "\(summary.count), each of which may be asked")
            ]
        }
        return summary.faults.map { fault in
            .failure(
                .hooks, .bad,
                "nothing of the kind \(fault.kind) is sent: its hook \(fault.purpose), \(fault.function), is not "
                    + "asked; \(fault.text)",
                next: "mend the function, or take the hook away with postbell.set_hook(…, NULL)")
        }
    }

    static func version(_ facts: ServerFacts) -> CheckItem {
        let (major, supported) = (facts.majorVersion, ServerFacts.supportedVersions)
        let shown = "PostgreSQL \(major).\(facts.version % 10_000)"
        if major < supported.lowerBound {
            return .failure(.version, .bad, "\(shown) is too old", next: "use a server of version \(supported.text)")
        }
        if major > supported.upperBound {
            return .warning(
                .version, "\(shown) is newer than this program was tested with",
                next: "use a server of version \(supported.text), or a newer version of this program")
        }
        return .ok(.version, shown)
    }

    static func primary(_ facts: ServerFacts) -> CheckItem {
        if facts.isInRecovery {
            return .failure(
                .primary, .unreachable, "the server is in recovery: it follows another and takes no writes",
                next: "connect to the primary; with several hosts set target_session_attrs=read-write")
        }
        if facts.isReadOnly {
            return .failure(
                .primary, .refused, "the session is read-only",
                next: "reset default_transaction_read_only for this role and database")
        }
        return .ok(.primary, "the server takes writes")
    }
}

extension ClosedRange<Int> {
    fileprivate var text: String { "\(lowerBound) to \(upperBound)" }
}
