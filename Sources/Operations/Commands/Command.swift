/// One command of `postbell`.
protocol Command: Sendable {
    /// What it is and takes.
    static var description: CommandDescription { get }

    /// Does it, on the context's loop. What cannot be done is thrown.
    func run(_ options: ParsedOptions, _ context: CommandContext) async throws(CommandFailure) -> ExitCode
}
