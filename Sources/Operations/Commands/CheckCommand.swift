/// `postbell check`: the doctor. Looks at everything that a worker needs, and says what to do where it lacks.
struct CheckCommand: Command {
    static let description = CommandDescription(
        name: .check,
        summary: "look at all that a worker needs, and say what to do",
        details: """
            Reads the settings of `dispatch` and opens its connections, in the worker's role, but sends nothing and \
            changes nothing. One line for each thing: ok, warn or fail, and what to do. Ends with 0 when nothing \
            failed, else with the status of the most fundamental failure: 3 configuration or credential, 4 \
            unreachable, 5 schema, 6 rights, 1 anything else.
            """,
        options: [offline, .json, .environmentFile],
        example: "postbell check --env-file /etc/postbell/apns.env")

    private static let offline = OptionDescription(
        name: "--offline", value: nil, meaning: "look at settings and key files only, and connect to nothing")

    let providers: any ProviderInspector

    func run(_ options: ParsedOptions, _ context: CommandContext) async throws(CommandFailure) -> ExitCode {
        let isOffline = options.has(Self.offline)
        var report = CheckReport(isOffline: isOffline)
        let examined = ExaminedConfiguration(try context.sources(options), for: .check)
        let configuration = examined.configuration
        ProcessEnvironment.add(configuration.database.variables)
        report.add(examined.items)
        if !examined.concerns(.credential) { report.add(providers.credentials(of: configuration)) }
        if !isOffline {
            if !examined.concerns(.database) {
                report.add(await DatabaseExamination(configuration, providers, context).run())
            }
            if !examined.concerns(.endpoint) {
                report.add(await providers.endpoints(of: configuration, on: context.loop))
            }
        }
        report.write(to: context.output, asJSON: options.has(.json))
        return report.code
    }
}
