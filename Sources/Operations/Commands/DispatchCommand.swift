package import EventLoop
import Glibc
import HTTP2
package import Telemetry

/// What a worker is given to run with.
package struct DispatchEnvironment: Sendable {
    /// What the operator has set.
    package let configuration: Configuration
    /// Where the database is, as messages name it: no password.
    package let databasePlace: String
    /// The loop on which the worker runs.
    package let loop: EventLoop
    /// The log.
    package let log: LogWriter
    /// The service manager.
    package let notifier: ServiceNotifier
}

/// Runs a worker until it is told to stop. Throws a failure with one of the codes `configuration` and `schema`; every
/// other trouble it waits out.
package typealias DispatchRunner = @Sendable (DispatchEnvironment) async throws(CommandFailure) -> ExitCode

/// `postbell dispatch`: the worker.
struct DispatchCommand: Command {
    static let description = CommandDescription(
        name: .dispatch,
        summary: "run the worker: claim due rows, push them, record and settle",
        details: """
            Runs until SIGTERM or SIGINT, then finishes what is in flight and ends with status 0; a second signal ends \
            it at once, and what was in flight is tried again by another worker. Without a provider's credential it \
            stays up and claims nothing. It ends by itself only with status 2, 3 or 5; everything else it waits out, \
            and its log says what it waits for.
            """,
        options: [providers, .environmentFile],
        example: "postbell dispatch --env-file /etc/postbell/apns.env")

    private static let providers = OptionDescription(
        name: "--providers", value: "LIST", meaning: "serve only these providers (as POSTBELL_PROVIDERS does)")

    let runner: DispatchRunner

    func run(_ options: ParsedOptions, _ context: CommandContext) async throws(CommandFailure) -> ExitCode {
        var settings: [SettingName: (option: String, value: String)] = [:]
        if let list = options.value(Self.providers) { settings[.providers] = (Self.providers.name, list) }
        let configuration = try context.configuration(for: .dispatch, options, setting: settings)
        let variables = context.environment
        let log = LogWriter(
            level: configuration.logging.level,
            format: configuration.logging.format,
            hasPriorities: JournalStream.isConnected(2, variable: variables["JOURNAL_STREAM"]))
        let notifier = ServiceNotifier(
            socket: variables["NOTIFY_SOCKET"], watchdogMicroseconds: variables["WATCHDOG_USEC"],
            watchdogProcess: variables["WATCHDOG_PID"])
        announce(configuration, log)
        return try await runner(
            DispatchEnvironment(
                configuration: configuration, databasePlace: context.place(of: configuration.database),
                loop: context.loop, log: log, notifier: notifier))
    }

    private func announce(_ configuration: Configuration, _ log: LogWriter) {
        log.notice("worker starts", [.version: .text(PostbellVersion.current), .process: .int(Int(getpid()))])
        announce(.apnsEndpoint, configuration.apns.endpoint, "pushes go to a replacement for Apple's hosts", log)
        announce(.fcmEndpoint, configuration.fcm.endpoint, "pushes go to a replacement for Google's host", log)
        announce(
            .fcmTokenEndpoint, configuration.fcm.tokenEndpoint,
            "access tokens come from a replacement for Google's host", log)
        if let proxy = configuration.connections.proxy {
            log.notice(
                "providers are reached through a proxy", [.host: .text(proxy.host), .port: .int(Int(proxy.port))])
        }
        if configuration.apns.credentials.isEmpty, configuration.fcm.credentials.isEmpty {
            log.notice(
                "no provider is configured: nothing is claimed",
                [.next: "set APNS_KEY_FILE and its companions, or FCM_SERVICE_ACCOUNT_FILE"])
        }
    }

    private func announce(_ name: SettingName, _ endpoint: HTTPSEndpoint?, _ message: StaticString, _ log: LogWriter) {
        guard let endpoint else { return }
        log.warning(
            message, [.host: .text(endpoint.host), .port: .int(endpoint.port), .setting: .text(name.rawValue)])
    }
}
