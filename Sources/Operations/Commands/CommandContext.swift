package import EventLoop

/// What a command works with.
package struct CommandContext: Sendable {
    /// The process's environment.
    package let environment: [String: String]
    /// Standard output.
    package let output: Terminal
    /// Standard error.
    package let errors: Terminal
    /// The loop on which everything that waits runs; it turns as long as the command runs.
    package let loop: EventLoop

    /// The configuration that `command` needs, from the environment and the file of `--env-file`.
    func configuration(
        for command: CommandName, _ options: ParsedOptions,
        setting settings: [SettingName: (option: String, value: String)] = [:]
    ) throws(CommandFailure) -> Configuration {
        let sources = try sources(options, setting: settings)
        do throws(ConfigurationProblems) {
            let configuration = try Configuration(sources, for: command)
            ProcessEnvironment.add(configuration.database.variables)
            return configuration
        } catch {
            throw CommandFailure(error)
        }
    }

    /// Where settings come from.
    func sources(
        _ options: ParsedOptions, setting settings: [SettingName: (option: String, value: String)] = [:]
    ) throws(CommandFailure) -> SettingSources {
        do throws(EnvironmentFileError) {
            let path = options.value(.environmentFile)
            let file = try path.map { path throws(EnvironmentFileError) in try EnvironmentFile.read(path) }
            return SettingSources(environment: environment, file: file, options: settings)
        } catch {
            throw CommandFailure(error)
        }
    }
}
