import EventLoop
import Glibc
import Synchronization
import Telemetry

/// The program `postbell`: understands the command line, runs the command, says what went wrong, and knows the status.
package struct CommandLineTool: Sendable {
    private let environment: [String: String]
    private let output: Terminal
    private let errors: Terminal
    private let dispatch: DispatchRunner
    private let providers: any ProviderInspector

    /// In the order of the overview.
    static let commands = [
        DispatchCommand.description,
        MigrateCommand.description,
        CheckCommand.description,
        StatusCommand.description,
        ShowCommand.description,
        LedgerCommand.description,
        RetainCommand.description,
        ConfigCommand.description,
    ]

    /// A tool whose worker is `dispatch`, and whose doctor asks `providers`.
    package init(
        environment: [String: String], providers: any ProviderInspector, dispatch: @escaping DispatchRunner
    ) {
        self.environment = environment
        output = Terminal(descriptor: 1, environment: environment)
        errors = Terminal(descriptor: 2, environment: environment)
        self.dispatch = dispatch
        self.providers = providers
    }

    /// Does what `arguments` (without the program's name) ask for, and returns the status to exit with. Called once, on
    /// the main thread, which turns the loop meanwhile.
    package func run(_ arguments: [String]) -> Int32 {
        Self.prepareSignals()
        Self.openStandardDescriptors()
        do throws(CommandFailure) {
            try ProcessMemory.keepPrivate()
            switch try ArgumentParser(commands: Self.commands).parse(arguments) {
            case .version:
                output.write("postbell \(PostbellVersion.current)\n")
            case .help(nil):
                output.write(HelpText.overview(Self.commands))
            case .help(let name?):
                output.write(HelpText.command(type(of: command(name)).description))
            case .run(let name, let options):
                let code = try run(command(name), options)
                try checkOutput()
                return code.rawValue
            }
            try checkOutput()
            return ExitCode.done.rawValue
        } catch {
            report(error)
            return error.code.rawValue
        }
    }

    /// Throws when something that was printed is lost: who asked for it must not take the rest for the whole.
    private func checkOutput() throws(CommandFailure) {
        guard let number = output.lostBecause else { return }
        throw CommandFailure(
            .bad, what: "the output cannot be written: \(String(cString: strerror(number)))", place: "standard output",
            next: "write to where there is room; what the command did stays done")
    }

    private static func prepareSignals() {
        // A reader of our output may go away; that is its own affair, and `write` reports it.
        signal(SIGPIPE, SIG_IGN)
        // Blocked signals are inherited: a parent that starts us with some blocked would make us deaf to SIGTERM.
        var none = sigset_t()
        sigemptyset(&none)
        pthread_sigmask(SIG_SETMASK, &none, nil)
    }

    /// Started without one of its three standard descriptors, the program would give the number to a socket, and write
    /// its log there.
    private static func openStandardDescriptors() {
        for descriptor in Int32(0)...2 where fcntl(descriptor, F_GETFD) == -1 {
            // Takes the lowest free number, which is this one. What is printed must not vanish there in silence, but a
            // worker without a log may run.
            _ = open("/dev/null", descriptor == 1 ? O_RDONLY : O_RDWR)
        }
    }

    private func command(_ name: CommandName) -> any Command {
        switch name {
        case .dispatch: DispatchCommand(runner: dispatch)
        case .migrate: MigrateCommand()
        case .check: CheckCommand(providers: providers)
        case .status: StatusCommand()
        case .show: ShowCommand()
        case .ledger: LedgerCommand()
        case .retain: RetainCommand()
        case .config: ConfigCommand()
        }
    }

    private func run(_ command: any Command, _ options: ParsedOptions) throws(CommandFailure) -> ExitCode {
        let loop = EventLoop()
        let context = CommandContext(environment: environment, output: output, errors: errors, loop: loop)
        let result = CommandResult()
        Task(executorPreference: loop) {
            do throws(CommandFailure) {
                result.set(.success(try await command.run(options, context)))
            } catch {
                result.set(.failure(error))
            }
            loop.stop()
        }
        loop.run()
        return try result.get()
    }

    private func report(_ failure: CommandFailure) {
        let isJournal = JournalStream.isConnected(2, variable: environment["JOURNAL_STREAM"])
        let prefix = isJournal ? "<\(LogLevel.error.priority)>" : ""
        for problem in failure.problems {
            errors.write("\(prefix)\(errors.paint("postbell:", .red)) \(QuotedText.line(problem.line))\n")
        }
    }
}

/// Hands a command's end from its task to the thread that turned the loop.
private final class CommandResult: Sendable {
    private let result = Mutex<Result<ExitCode, CommandFailure>?>(nil)

    func set(_ value: Result<ExitCode, CommandFailure>) {
        result.withLock { $0 = value }
    }

    func get() throws(CommandFailure) -> ExitCode {
        guard let value = result.withLock({ $0 }) else { preconditionFailure("the loop stopped before its command") }
        return try value.get()
    }
}
