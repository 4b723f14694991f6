package import OutboxPostgres
package import Postgres

extension CommandFailure {
    /// A session that could not be opened, or a statement that failed, at `place`; parameters that are wrong are at no
    /// place, and show nothing of themselves.
    package init(_ error: PostgresError, place: String) {
        let (code, next) = Self.advice(for: error)
        let state = error.sqlState.map { " (SQLSTATE \($0.code))" } ?? ""
        // libpq's messages of several lines arrive with semicolons between them, which here end a part.
        let message = error.message.replacing("; ", with: ", ")
        self.init(
            code, what: "\(error.operation) failed: \(message)\(state)",
            place: error.kind == .configuration ? "DATABASE_URL and libpq's variables" : place, next: next)
    }

    /// A command that only looks was refused or not served, at `place`.
    init(reading error: PostgresError, place: String) {
        let failure = CommandFailure(error, place: place)
        guard error.sqlState?.code == "42501" else {
            self = failure
            return
        }
        self.init(failure.code, what: failure.problems[0].what, place: place, next: Self.readerAdvice)
    }

    /// The schema's revision could not be read for a command that only looks, at `place`.
    init(reading error: MigrationError, place: String) {
        guard case .unreachable("42501", _) = error else {
            self.init(error, place: place)
            return
        }
        self.init(.refused, what: error.description, place: place, next: Self.readerAdvice)
    }

    private static let readerAdvice = "use a login that is granted postbell_reader (or postbell_operator)"

    /// Migrations that were not applied, or could not be looked at, in the database at `place`.
    init(_ error: MigrationError, place: String) {
        let what = error.description.replacing("; ", with: ", ")
        switch error {
        case .changed(let version, _):
            self.init(
                .schema, what: what, place: place,
                next: "run the program that applied migration \(version), or a newer one")
        case .tooNew:
            self.init(
                .schema, what: what, place: place, next: "install the version that made the schema, or a newer one")
        case .failed(_, _, let state, _), .unreachable(let state, _):
            self.init(
                state.isEmpty ? .unreachable : .refused, what: what, place: place, next: Self.advice(forState: state))
        }
    }

    /// Nil when a worker may run on a schema of `revision`.
    package init?(_ revision: SchemaRevision, place: String) {
        let expected = SchemaRevision.expected
        switch revision {
        case .current:
            return nil
        case .tooOld(0):
            self.init(
                .schema, what: "the database has no schema of Postbell", place: place, next: "run `postbell migrate`")
        case .tooOld(let found):
            self.init(
                .schema, what: "the schema is at revision \(found), this program needs \(expected)", place: place,
                next: "run `postbell migrate`")
        case .tooNew(let found):
            self.init(
                .schema, what: "the schema is at revision \(found), this program knows only \(expected)", place: place,
                next: "install a newer version of this program")
        case .changed(let version):
            self.init(MigrationError.changed(version: version, name: "migration"), place: place)
        }
    }

    private static func advice(for error: PostgresError) -> (ExitCode, String) {
        switch error.kind {
        case .configuration:
            return (.configuration, "correct what is wrong there; see libpq's documentation of connection strings")
        case .recovery:
            return (.unreachable, "connect to the primary; with several hosts set target_session_attrs=read-write")
        case .connection, .deadline, .closed, .overloaded:
            return (.unreachable, advice(forState: ""))
        case .server(let state):
            return (error.isConnectionFault ? .unreachable : .refused, advice(forState: state.code))
        case .decoding, .skipped:
            return (.refused, advice(forState: "XX000"))
        }
    }

    private static func advice(forState state: String) -> String {
        switch state {
        case "": "see that the server runs there and can be reached"
        case "42501": "use a role that has this right; `postbell migrate` needs CREATE on the database and CREATEROLE"
        case "3D000": "create the database, or correct its name"
        case "55P03", "57014": "try again when fewer transactions hold locks on these tables"
        case _ where state.hasPrefix("28"): "correct user and password, or the server's pg_hba.conf"
        case _ where state.hasPrefix("53"), _ where state.hasPrefix("57"): "try again when the server has recovered"
        default: "see the server's log"
        }
    }
}
