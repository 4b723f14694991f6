import Operations

#if CRASH_POINTS
    import CrashPoints
#endif

/// Runs the worker: the one place where configuration, database, providers and dispatcher meet.
func runDispatch(_ environment: DispatchEnvironment) async throws(CommandFailure) -> ExitCode {
    let code = try await DispatchWorker(environment).run()
    #if CRASH_POINTS
        CrashPoint.ended.reached()
    #endif
    return code
}
