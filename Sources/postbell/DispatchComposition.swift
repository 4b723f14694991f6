import Operations

/// Runs the worker: the one place where configuration, database, providers and dispatcher meet.
func runDispatch(_ environment: DispatchEnvironment) async throws(CommandFailure) -> ExitCode {
    try await DispatchWorker(environment).run()
}
