/// The environment variables that libpq reads itself.
enum DatabaseVariables {
    /// From "Environment Variables" in PostgreSQL 18's documentation of libpq, and those that only older ones know.
    static let names: Set<String> = [
        "PGHOST", "PGHOSTADDR", "PGPORT", "PGDATABASE", "PGUSER", "PGPASSWORD", "PGPASSFILE", "PGREQUIREAUTH",
        "PGCHANNELBINDING", "PGSERVICE", "PGSERVICEFILE", "PGOPTIONS", "PGAPPNAME", "PGSSLMODE", "PGREQUIRESSL",
        "PGSSLNEGOTIATION", "PGSSLCOMPRESSION", "PGSSLCERT", "PGSSLKEY", "PGSSLCERTMODE", "PGSSLROOTCERT", "PGSSLCRL",
        "PGSSLCRLDIR", "PGSSLSNI", "PGREQUIREPEER", "PGSSLMINPROTOCOLVERSION", "PGSSLMAXPROTOCOLVERSION",
        "PGGSSENCMODE", "PGKRBSRVNAME", "PGGSSLIB", "PGGSSDELEGATION", "PGCONNECT_TIMEOUT", "PGCLIENTENCODING",
        "PGTARGETSESSIONATTRS", "PGLOADBALANCEHOSTS", "PGMINPROTOCOLVERSION", "PGMAXPROTOCOLVERSION", "PGDATESTYLE",
        "PGTZ", "PGGEQO", "PGSYSCONFDIR", "PGLOCALEDIR",
    ]

    /// Those that hold a secret.
    static let secret: Set<String> = ["PGPASSWORD"]

    /// Those that the file sets and the environment does not.
    static func fromFile(_ sources: SettingSources) -> [String: String] {
        guard let file = sources.file else { return [:] }
        return file.entries.filter { names.contains($0.key) && sources.environment[$0.key] == nil }.mapValues(\.value)
    }
}
