import CLibPQ
import EventLoop

#if CRASH_POINTS
    import CrashPoints
#endif

/// What runs on a connection once it is the caller's turn.
extension PostgresConnection {
    /// Settles what holds for the session, and asks in the same round trip whether the server takes writes.
    func begin(until deadline: ContinuousClock.Instant) async throws(PostgresError) {
        wire.start()
        var sql = "SELECT pg_catalog.pg_is_in_recovery(), pg_catalog.current_setting('transaction_read_only') = 'on'"
        var parameters = PostgresParameters()
        for (index, setting) in configuration.settings.enumerated() {
            sql += ", pg_catalog.set_config($\(2 * index + 1), $\(2 * index + 2), false)"
            parameters.append(setting.name)
            parameters.append(setting.value)
        }
        let types = [PostgresType](repeating: .text, count: parameters.count)
        let command = PostgresCommand(PostgresStatement("connect", sql, parameterTypes: types), parameters)
        do throws(PostgresError) {
            let result = try await perform("connect", deadline) { () async throws(PostgresError) in
                try submit(command, byName: false)
                wire.flush()
                return try await collect("connect")
            }
            let isInRecovery = try result.bool(0, 0)
            let isReadOnly = try result.bool(0, 1)
            if !configuration.acceptsReadOnly && (isInRecovery || isReadOnly) {
                let state = isInRecovery ? "is in recovery" : "is read-only"
                throw PostgresError(.recovery, operation: "connect", message: "the server \(state)")
            }
        } catch {
            wire.end(error)
            throw error
        }
    }

    /// Executes a command alone. A prepared form that the server refuses as stale is made anew, once.
    func run(_ command: PostgresCommand) async throws(PostgresError) -> PostgresResult {
        do {
            return try await runOnce(command)
        } catch {
            guard isStale(error) else { throw error }
            forget(command.statement)
            guard wire.isOutsideTransaction else { throw error }
        }
        return try await runOnce(command)
    }

    func runScript(_ sql: String, named name: String) async throws(PostgresError) -> PostgresResult {
        try wire.submit(name) { PQsendQuery($0, sql) }
        wire.flush()
        return try await collect(name)
    }

    func runPipeline(
        _ commands: [PostgresCommand], _ commit: PipelineCommit
    ) async throws(PostgresError) -> [Result<PostgresResult, PostgresError>] {
        for command in commands { try await prepareIfNeeded(command.statement) }
        if let first = commands.first { try requireTime(first.statement) }
        let name = "pipeline"
        try wire.submit(name) { PQenterPipelineMode($0) }
        for (index, command) in commands.enumerated() {
            try submit(command, byName: configuration.preparesStatements)
            if commit == .each || index == commands.count - 1 { try wire.submit(name) { PQpipelineSync($0) } }
        }
        wire.flush()
        var results: [Result<PostgresResult, PostgresError>] = []
        results.reserveCapacity(commands.count)
        for command in commands {
            do {
                let result = try await collect(command.statement.name)
                results.append(.success(result))
            } catch {
                if isStale(error) { forget(command.statement) }
                results.append(.failure(error))
            }
            if commit == .each { await skipSync() }
        }
        if commit == .atEnd { await skipSync() }
        if wire.isOpen { try wire.submit(name) { PQexitPipelineMode($0) } }
        return results
    }

    private func runOnce(_ command: PostgresCommand) async throws(PostgresError) -> PostgresResult {
        try await prepareIfNeeded(command.statement)
        try requireTime(command.statement)
        #if CRASH_POINTS
            CrashPoint.reached(.unsent, of: command.statement.name)
        #endif
        try submit(command, byName: configuration.preparesStatements)
        wire.flush()
        #if CRASH_POINTS
            CrashPoint.reached(.sent, of: command.statement.name)
        #endif
        let result = try await collect(command.statement.name)
        #if CRASH_POINTS
            CrashPoint.reached(.answered, of: command.statement.name)
        #endif
        return result
    }

    // MARK: Prepared statements

    private func prepareIfNeeded(_ statement: PostgresStatement) async throws(PostgresError) {
        guard configuration.preparesStatements else { return }
        let name = statement.name
        if let text = prepared[name] {
            return precondition(text == statement.sql, "two statements share the name \(name)")
        }
        if stale.contains(name) {
            do { _ = try await runScript("DEALLOCATE \"\(name)\"", named: name) } catch {
                guard error.sqlState == .invalidStatementName else { throw error }
            }
            stale.remove(name)
        }
        let types = statement.parameterTypes.map(\.oid)
        try wire.submit(name) { PQsendPrepare($0, name, statement.sql, Int32(types.count), types) }
        wire.flush()
        _ = try await collect(name)
        prepared[name] = statement.sql
    }

    /// Whether the server refused a statement because of its prepared form: its plan does not fit the changed schema,
    /// or a proxy gave us another session, where the name is unknown or taken.
    private func isStale(_ error: PostgresError) -> Bool {
        guard configuration.preparesStatements, let state = error.sqlState else { return false }
        return state == .featureNotSupported || state == .invalidStatementName || state == .duplicateStatement
    }

    private func forget(_ statement: PostgresStatement) {
        prepared[statement.name] = nil
        stale.insert(statement.name)
    }

    // MARK: Sending and collecting

    /// A request to cancel that came while a statement was prepared found nothing to cancel, so it is not even sent.
    private func requireTime(_ statement: PostgresStatement) throws(PostgresError) {
        guard deadline.isExpired else { return }
        throw PostgresError(.deadline, operation: statement.name, message: "the deadline passed before it was sent")
    }

    private func submit(_ command: PostgresCommand, byName: Bool) throws(PostgresError) {
        let statement = command.statement
        let count = Int32(command.parameters.count)
        try wire.submit(statement.name) { connection in
            command.parameters.withPointers { values, lengths, formats in
                if byName {
                    return PQsendQueryPrepared(connection, statement.name, count, values, lengths, formats, 1)
                }
                let types = statement.parameterTypes.map(\.oid)
                return PQsendQueryParams(connection, statement.sql, count, types, values, lengths, formats, 1)
            }
        }
    }

    /// The result of one statement, or the last one of a script. Always reads to the end, so that the next may follow.
    private func collect(_ name: String) async throws(PostgresError) -> PostgresResult {
        var failure: PostgresError?
        var last: PostgresResult?
        while true {
            let next: OpaquePointer?
            do { next = try await wire.nextResult(name) } catch { throw failure ?? error }
            guard let next else { break }
            if let error = failureReport(next, named: name) {
                failure = failure ?? error
                PQclear(next)
            } else {
                last = PostgresResult(owning: next, operation: name)
            }
        }
        if let failure { throw failure }
        guard let last else {
            throw PostgresError(.decoding, operation: name, message: "the server sent no result", mayHaveRun: true)
        }
        return last
    }

    /// The error that a result reports, if it reports one.
    private func failureReport(_ result: OpaquePointer, named name: String) -> PostgresError? {
        switch PQresultStatus(result) {
        case PGRES_COMMAND_OK, PGRES_TUPLES_OK, PGRES_EMPTY_QUERY:
            return nil
        case PGRES_PIPELINE_ABORTED:
            return PostgresError(.skipped, operation: name, message: "an earlier statement of the pipeline failed")
        case PGRES_COPY_IN, PGRES_COPY_OUT, PGRES_COPY_BOTH:
            let error = PostgresError(.decoding, operation: name, message: "COPY is not supported", mayHaveRun: true)
            wire.end(error)
            return error
        default:
            // A session that is ended may have committed just before.
            let isFatal = ServerError.isFatal(result)
            let error = ServerError.read(result, operation: name, mayHaveRun: isFatal)
            guard error.sqlState == .queryCanceled && deadline.isExpired else { return error }
            return PostgresError(
                .deadline, operation: name, message: "the server cancelled the statement at its deadline")
        }
    }

    /// Reads the mark that ends a part of a pipeline. A connection that broke shows in the next statement.
    private func skipSync() async {
        if let result = try? await wire.nextResult("pipeline") { PQclear(result) }
    }
}

extension PostgresParameters {
    /// Passes values, lengths and formats to `body` as libpq wants them.
    fileprivate func withPointers(
        _ body: (UnsafePointer<UnsafePointer<CChar>?>?, UnsafePointer<Int32>?, UnsafePointer<Int32>?) -> Int32
    ) -> Int32 {
        let formats = [Int32](repeating: 1, count: count)
        return buffer.bytes.withUnsafeBytes { bytes in
            // An empty buffer may have no address, but an empty value is not a null and needs one.
            withUnsafePointer(to: UInt8(0)) { empty in
                let start = bytes.baseAddress ?? UnsafeRawPointer(empty)
                let values = offsets.indices.map { index in
                    lengths[index] < 0 ? nil : (start + offsets[index]).assumingMemoryBound(to: CChar.self)
                }
                return body(values, lengths, formats)
            }
        }
    }
}
