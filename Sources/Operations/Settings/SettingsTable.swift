/// The one table of settings. `--help`, `postbell config` and docs/configuration.md are made from it.
package enum SettingsTable {
    /// All settings, grouped as the reference page shows them.
    package static let groups = [database, apns, fcm, dispatch, connections, logs]

    /// The row of `name`.
    package static func setting(_ name: SettingName) -> Setting {
        guard let setting = rows[name] else {
            preconditionFailure("\(name.rawValue) has no row in the table of settings")
        }
        return setting
    }

    private static let rows = Dictionary(uniqueKeysWithValues: groups.flatMap(\.settings).map { ($0.name, $0) })

    private static let database = SettingGroup(
        title: "Database",
        introduction: """
            libpq's own variables (`PGHOST`, `PGUSER`, `PGSSLMODE` and so on) work as everywhere; what `DATABASE_URL` \
            says goes before them. Give a password by `PGPASSFILE` or a client certificate rather than `PGPASSWORD`.
            """,
        settings: [
            Setting(
                .databaseURL, .connectionString, absence: "libpq's variables and defaults",
                "where the database is, as URI or as keywords and values",
                reason: "hosting platforms hand a database over under this name",
                for: [.dispatch, .migrate, .status, .show, .ledger, .retain])
        ])

    private static let dispatch = SettingGroup(
        title: "Dispatch",
        introduction: "How the worker claims, checks, retries and settles, and how it stops.",
        settings: [
            Setting(
                .providers, .choices(CredentialSettings.all.map(\.provider)), absence: "those with a credential",
                "which providers this worker serves",
                reason: "a role can hold one provider's secrets only; --providers does the same"),
            Setting(
                .wake, .choice(["listen", "poll"]), default: "listen", "how the worker learns of new rows",
                reason: "LISTEN needs a session of its own; poll works behind a transaction-pooling proxy"),
            Setting(
                .poll, .duration(.milliseconds(50)...(.seconds(60))), default: "1s",
                "longest time without a claim while idle, jittered",
                reason: "bounds the delay of a push whose wake-up was lost"),
            Setting(
                .batch, .count(1...5000), default: "1000", "most rows a claim takes",
                reason: "large enough that a round trip costs nothing per row"),
            Setting(
                .lease, .duration(.seconds(5)...(.minutes(15))), default: "30s",
                "life of a lease, renewed at a third of it",
                reason: "a dead worker's rows wait this long; must outlast a request and its settling"),
            Setting(
                .recheckAfter, .duration(.zero...(.seconds(60))), default: "1s",
                "age of a check beyond which a row is checked again before it is sent",
                reason: "bounds how stale a push can be that was superseded meanwhile"),
            Setting(
                .targetsPerClaim, .count(1...5000), default: "500", "devices of one principal worked off per claim",
                reason: "one principal with very many devices must not fill a batch"),
            Setting(
                .settleRows, .count(1...5000), default: "1000", "most results that one statement settles",
                reason: "bounds the statement; fewer wait for POSTBELL_SETTLE_DELAY"),
            Setting(
                .settleDelay, .duration(.zero...(.seconds(1))), default: "5ms",
                "longest wait of a result for others to be settled with",
                reason: "one statement for many results, and hardly later"),
            Setting(
                .stopTimeout, .duration(.seconds(1)...(.minutes(10))), default: "20s",
                "how long SIGTERM waits for requests in flight",
                reason: "at least one request's time, and below the service manager's own limit"),
            Setting(
                .retry, .durations(.seconds(1)...(.days(7)), count: 1...20), default: "30s,2m,10m,1h",
                "waits between the attempts of one target; the number of waits bounds the attempts",
                reason: "up to a fifth is added at random, never taken away"),
            Setting(
                .maxCrashes, .count(1...100), default: "5",
                "lapsed leases after which a row is set aside as failed",
                reason: "a row that kills its worker must not do so for ever"),
            Setting(
                .maxFailures, .count(0...100), default: "0",
                "failures in a row, in a lane where others succeed, that clear a device's token; 0 for never",
                reason: "only proof clears a token, and a failure is none: for those who have to give up sometime"),
            Setting(
                .retryBudget, .percentage(0...100), default: "10%", "retries as a share of a lane's first sends",
                reason: "a provider in trouble is not asked more for being in trouble; a refused retry waits"),
            Setting(
                .proofWindow, .duration(.minutes(1)...(.days(30))), default: "24h",
                "how recent an accepted push must be to prove that a lane is set up right",
                reason: "only then does a 400 such as BadDeviceToken clear a token"),
            Setting(
                .stormShare, .percentage(1...100), default: "20%",
                "share of a topic's answers against tokens beyond which the topic pauses and clears none",
                reason: "a wrong environment looks like a registry of dead tokens"),
            Setting(
                .stormCount, .count(1...100_000), default: "20",
                "number of such answers that must be exceeded as well",
                reason: "a few dead tokens on a quiet topic are no storm"),
            Setting(
                .stormWindow, .duration(.seconds(10)...(.hours(24))), default: "5m",
                "time in which answers are counted together",
                reason: "long enough to see a fault of all, short enough to forget one that was mended"),
            Setting(
                .stuckAfter, .duration(.minutes(1)...(.hours(24))), default: "5m",
                "age from due of a pending notification that is warned about, and the pause between warnings",
                reason: "names what waits for a route that nobody serves", for: [.dispatch, .status, .show]),
        ])

    private static let connections = SettingGroup(
        title: "Connections to providers",
        introduction: """
            A lane is one provider, environment and credential; it has connections of its own. `POSTBELL_PROXY` goes \
            before `https_proxy`, and that before `HTTPS_PROXY`; hosts of `no_proxy` (else `NO_PROXY`) are reached \
            without any of them. A name in that list stands for itself and for all below it; addresses and networks \
            in it match nothing but an address that is written the same way.
            """,
        settings: [
            Setting(
                .concurrency, .count(1...10_000), default: "1000", "requests in flight per lane",
                reason: "what one connection to APNs allows"),
            Setting(
                .connections, .count(1...64), default: "4", "most connections per lane",
                reason: "more are opened only while all slots are busy"),
            Setting(
                .requestTimeout, .duration(.seconds(1)...(.seconds(60))), default: "10s",
                "longest time from a request's first byte to its whole answer",
                reason: "after it the outcome is unknown and an attempt is spent"),
            Setting(
                .connectTimeout, .duration(.seconds(1)...(.seconds(60))), default: "10s",
                "longest time for name, TCP, TLS and the peer's first SETTINGS",
                reason: "as for a request"),
            Setting(
                .pingAfter, .duration(.seconds(5)...(.hours(1))), default: "15s",
                "silence with requests open after which a PING is sent",
                reason: "finds connections that a NAT has dropped; idle ones get one an hour"),
            Setting(
                .pingTimeout, .duration(.seconds(1)...(.seconds(60))), default: "5s",
                "how long the answer to a PING may take",
                reason: "after it the connection counts as dead"),
            Setting(
                .idleTimeout, .duration(.minutes(1)...(.hours(24))), default: "1h",
                "idle time after which connections beyond the first are closed",
                reason: "Apple asks to keep connections open"),
            Setting(
                .certificateFile, .path, absence: "the system's CAs alone",
                "CA certificates (PEM) to trust besides the system's",
                reason: "verification cannot be switched off, only a CA added"),
            Setting(
                .proxy, .proxy, absence: "https_proxy",
                "HTTP proxy through which providers are reached, by CONNECT; `none` for a direct way in any case",
                reason: "TLS is the provider's all the way; the proxy sees a host name and no more"),
            Setting(
                .httpsProxy, .proxy, absence: "no proxy",
                "the same, for whoever sets it for all programs of a machine; `HTTPS_PROXY` counts too",
                reason: "what other programs obey is obeyed here"),
            Setting(
                .noProxy, .proxyExceptions, absence: "no exceptions",
                "host names that are reached without a proxy, `*` for all; `NO_PROXY` counts too",
                reason: "what other programs obey is obeyed here"),
        ])

    private static let logs = SettingGroup(
        title: "Logs",
        introduction: "What is written, and how, is in [logging](logging.md).",
        settings: [
            Setting(
                .logLevel, .choice(["debug", "info", "notice", "warning", "error"]), default: "info",
                "least important level that is written",
                reason: "info has a line per batch, debug one per row"),
            Setting(
                .logFormat, .choice(["logfmt", "json"]), default: "logfmt", "form of a line",
                reason: "both say the same"),
        ])
}

extension Duration {
    static func minutes(_ count: Int) -> Duration { .seconds(count * 60) }
    static func hours(_ count: Int) -> Duration { .seconds(count * 3600) }
    static func days(_ count: Int) -> Duration { .seconds(count * 86_400) }
}
