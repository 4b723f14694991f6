import Operations

/// Runs the worker.
func runDispatch(_ environment: DispatchEnvironment) async throws(CommandFailure) -> ExitCode {
    throw CommandFailure(.configuration, what: "not built yet", place: "this program", next: "wait")
}
