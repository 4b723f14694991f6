package import HTTP2
package import OutboxCore
package import Telemetry

/// What an operator has configured: complete, understood, and consistent. Only the doctor gets one that is not.
package struct Configuration: Sendable {
    /// Where the database is.
    package struct Database: Sendable, Equatable, CustomStringConvertible, CustomReflectable {
        /// libpq's connection string; empty when only libpq's variables say where to go. May hold a password: never
        /// written anywhere.
        package let connectionString: String
        /// libpq's variables that came from a file, for the process's environment, which libpq reads itself.
        package let variables: [String: String]

        /// Nothing of the content, which may be secret.
        package var description: String { "Database (not shown)" }
        /// Nothing of the content, which may be secret.
        package var customMirror: Mirror { Mirror(self, children: []) }
    }

    /// How the worker goes about its rows.
    package struct Dispatch: Sendable, Equatable {
        /// Whether new rows are announced by LISTEN; otherwise they are found by the poll alone.
        package let listens: Bool
        /// Longest time without a claim while idle.
        package let poll: Duration
        /// Most rows of a claim.
        package let batch: Int
        /// Life of a lease.
        package let lease: Duration
        /// Age beyond which a check is repeated before the send.
        package let recheckAfter: Duration
        /// Devices of one principal per claim.
        package let targetsPerClaim: Int
        /// Results per settling statement.
        package let settleRows: Int
        /// Longest wait of a result for the statement.
        package let settleDelay: Duration
        /// Longest drain.
        package let stopTimeout: Duration
        /// For kinds without a policy of their own.
        package let retry: RetryPolicy
        /// Lapsed leases after which a row is set aside.
        package let maxCrashes: Int
        /// Failures in a row that clear a token; 0 for never.
        package let maxFailures: Int
        /// Retries as a share of a lane's first sends, in percent.
        package let retryBudget: Int
        /// How recent an accept must be to prove a lane.
        package let proofWindow: Duration
        /// Share of answers against tokens that makes a storm, in percent.
        package let stormShare: Int
        /// Number of answers against tokens that makes a storm.
        package let stormCount: Int
        /// Time in which answers are counted together.
        package let stormWindow: Duration
        /// Age from due of a pending notification that is warned about.
        package let stuckAfter: Duration
    }

    /// Connections to providers.
    package struct Connections: Sendable, Equatable {
        /// Requests in flight per lane.
        package let concurrency: Int
        /// Most connections per lane.
        package let most: Int
        /// From a request's first byte to its whole answer.
        package let requestTimeout: Duration
        /// DNS, TCP, TLS, first SETTINGS.
        package let connectTimeout: Duration
        /// Silence before a PING.
        package let pingAfter: Duration
        /// Limit of the PING's answer.
        package let pingTimeout: Duration
        /// Idle connections beyond the first are closed after this.
        package let idleTimeout: Duration
        /// Path of CA certificates to trust besides the system's.
        package let certificateFile: String?
        /// The proxy, if any, for hosts that need one.
        let proxy: HTTPProxy?
        /// Hosts that are reached without it.
        let proxyExceptions: ProxyExceptions?

        /// The proxy on the way to `host`; nil for a direct way.
        package func proxy(to host: String) -> HTTPProxy? {
            proxyExceptions?.contain(host) == true ? nil : proxy
        }
    }

    /// The log.
    package struct Logging: Sendable, Equatable {
        /// Least level written.
        package let level: LogLevel
        /// Form of a line.
        package let format: LogFormat
    }

    /// Where the database is.
    package let database: Database
    /// How the worker goes about its rows.
    package let dispatch: Dispatch
    /// Connections to providers.
    package let connections: Connections
    /// The APNs side.
    package let apns: APNS
    /// The FCM side.
    package let fcm: FCM
    /// The log.
    package let logging: Logging

    /// Reads what `command` needs from `sources`; what the command does not need keeps its default. Throws all problems
    /// at once.
    package init(_ sources: SettingSources, for command: CommandName) throws(ConfigurationProblems) {
        var settings = ResolvedSettings(sources, for: command)
        ConfigurationRules.check(&settings, sources)
        guard settings.problems.isEmpty else { throw ConfigurationProblems(problems: settings.problems) }
        self.init(settings, sources)
    }

    /// The configuration as far as it is understood, with defaults for what is not, and the settings with all their
    /// problems.
    static func examine(
        _ sources: SettingSources, for command: CommandName
    ) -> (configuration: Configuration, settings: ResolvedSettings) {
        var settings = ResolvedSettings(sources, for: command)
        ConfigurationRules.check(&settings, sources)
        return (Configuration(settings, sources), settings)
    }

    private init(_ settings: ResolvedSettings, _ sources: SettingSources) {
        database = Database(
            connectionString: settings.text(.databaseURL) ?? "", variables: DatabaseVariables.fromFile(sources))
        dispatch = Dispatch(settings)
        connections = Connections(settings)
        let directory = sources.environment["CREDENTIALS_DIRECTORY"].flatMap { $0.isEmpty ? nil : $0 }
        apns = APNS(settings, directory)
        fcm = FCM(settings, directory)
        logging = Logging(settings)
    }
}

extension Configuration.Dispatch {
    fileprivate init(_ settings: ResolvedSettings) {
        listens = settings.text(.wake) == "listen"
        poll = settings.duration(.poll)
        batch = settings.count(.batch)
        lease = settings.duration(.lease)
        recheckAfter = settings.duration(.recheckAfter)
        targetsPerClaim = settings.count(.targetsPerClaim)
        settleRows = settings.count(.settleRows)
        settleDelay = settings.duration(.settleDelay)
        stopTimeout = settings.duration(.stopTimeout)
        retry = .list(settings.durations(.retry))
        maxCrashes = settings.count(.maxCrashes)
        maxFailures = settings.count(.maxFailures)
        retryBudget = settings.count(.retryBudget)
        proofWindow = settings.duration(.proofWindow)
        stormShare = settings.count(.stormShare)
        stormCount = settings.count(.stormCount)
        stormWindow = settings.duration(.stormWindow)
        stuckAfter = settings.duration(.stuckAfter)
    }
}

extension Configuration.Connections {
    fileprivate init(_ settings: ResolvedSettings) {
        concurrency = settings.count(.concurrency)
        most = settings.count(.connections)
        requestTimeout = settings.duration(.requestTimeout)
        connectTimeout = settings.duration(.connectTimeout)
        pingAfter = settings.duration(.pingAfter)
        pingTimeout = settings.duration(.pingTimeout)
        idleTimeout = settings.duration(.idleTimeout)
        certificateFile = settings.text(.certificateFile)
        proxy = settings.isSet(.proxy) ? settings.proxy(.proxy) : settings.proxy(.httpsProxy)
        proxyExceptions = settings.proxyExceptions(.noProxy)
    }
}

extension Configuration.Logging {
    fileprivate init(_ settings: ResolvedSettings) {
        level = settings.text(.logLevel).flatMap(LogLevel.init) ?? .info
        format = settings.text(.logFormat).flatMap(LogFormat.init) ?? .logfmt
    }
}
