import CLibPQ
import EventLoop

/// One attempt to connect, with a deadline.
///
/// libpq resolves host names, reads password, service and certificate files and computes keys inside
/// `PQconnectStart` and any `PQconnectPoll` (it moves to the next host there). Those calls therefore run on the loop's
/// threads; the waits between them are waits of the loop. So every way of libpq to name servers works, and a slow
/// resolver never holds the loop. At the deadline, or when its task is cancelled, the caller is released at once; a
/// call that is still under way frees what it made when it returns.
actor Connector: ReadinessHandler {
    private let loop: EventLoop
    private let configuration: PostgresConfiguration
    private var outcome: Result<UInt, PostgresError>?
    private var caller: UnsafeContinuation<Void, Never>?
    private var readiness: UnsafeContinuation<Void, Never>?

    init(_ configuration: PostgresConfiguration, on loop: EventLoop) {
        self.configuration = configuration
        self.loop = loop
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor {
        loop.asUnownedSerialExecutor()
    }

    /// An open connection, as the address of a `PGconn` that the caller owns.
    func connect() async throws(PostgresError) -> UInt {
        let timeout = configuration.connectTimeout
        let deadline = loop.arm(at: .now + timeout) { [weak self] in
            self?.assumeIsolated { $0.giveUp(.deadline, "not connected within \(timeout)") }
        }
        Task(executorPreference: loop) { await self.run() }
        await withTaskCancellationHandler {
            // The operation may begin by a hop, so the outcome may be there already.
            await withUnsafeContinuation { if outcome == nil { caller = $0 } else { $0.resume() } }
        } onCancel: {
            Task(executorPreference: loop) { await self.giveUp(.closed, "the attempt was given up") }
        }
        loop.cancel(deadline)
        guard let outcome else { preconditionFailure("a connector was resumed without an outcome") }
        return try outcome.get()
    }

    nonisolated func descriptorReady(_ ready: Interest) {
        assumeIsolated { connector in
            connector.readiness?.resume()
            connector.readiness = nil
        }
    }

    private func run() async {
        let keywords = configuration.keywords
        guard let connection = try? await loop.offload({ startConnecting(keywords) }), connection != 0 else {
            return finish(.failure(failure("out of memory")))
        }
        let failedFirst = PQstatus(OpaquePointer(bitPattern: connection)) == CONNECTION_BAD
        var status = PGRES_POLLING_WRITING
        while outcome == nil, status == PGRES_POLLING_WRITING || status == PGRES_POLLING_READING {
            // A failed start has no socket; the poll then tells why.
            let socket = PQsocket(OpaquePointer(bitPattern: connection))
            if socket >= 0 { await wait(socket, for: status == PGRES_POLLING_WRITING ? .writable : .readable) }
            guard outcome == nil else { break }
            let answer = try? await loop.offload { PQconnectPoll(OpaquePointer(bitPattern: connection)).rawValue }
            status = PostgresPollingStatusType(rawValue: answer ?? PGRES_POLLING_FAILED.rawValue)
        }
        conclude(connection, succeeded: status == PGRES_POLLING_OK, failedFirst)
    }

    private func conclude(_ connection: UInt, succeeded: Bool, _ failedFirst: Bool) {
        let pointer = OpaquePointer(bitPattern: connection)
        if outcome == nil && succeeded && PQsetnonblocking(pointer, 1) == 0 {
            PQsetErrorVerbosity(pointer, PQERRORS_DEFAULT)
            return finish(.success(connection))
        }
        if outcome == nil {
            let account = PQerrorMessage(pointer).map { String(cString: $0) } ?? ""
            finish(.failure(ServerError.connectFailure(account, isFirst: failedFirst)))
        }
        PQfinish(pointer)
    }

    /// Waits until the socket is ready or the deadline has passed. The socket is let go afterwards, because libpq may
    /// close it and open another in the next poll.
    private func wait(_ socket: Int32, for interest: Interest) async {
        loop.watch(socket, for: interest, handler: self)
        await withUnsafeContinuation { if outcome == nil { readiness = $0 } else { $0.resume() } }
        loop.unwatch(socket)
    }

    private func giveUp(_ kind: PostgresError.Kind, _ message: String) {
        finish(.failure(PostgresError(kind, operation: "connect", message: message)))
        readiness?.resume()
        readiness = nil
    }

    private func finish(_ outcome: Result<UInt, PostgresError>) {
        guard self.outcome == nil else { return }
        self.outcome = outcome
        caller?.resume()
        caller = nil
    }

    private func failure(_ message: String) -> PostgresError {
        PostgresError(.connection, operation: "connect", message: message)
    }
}

/// Starts a connection and answers its address, 0 without memory. Errors are asked for with their codes, since libpq
/// gives those of a failed start only in the text.
private func startConnecting(_ keywords: [(name: String, value: String)]) -> UInt {
    withCStrings(keywords.map(\.name)) { names in
        withCStrings(keywords.map(\.value)) { values in
            let connection = PQconnectStartParams(names, values, 1)
            PQsetErrorVerbosity(connection, PQERRORS_VERBOSE)
            return UInt(bitPattern: connection)
        }
    }
}

/// Passes `strings` to `body` as a null-terminated array of C strings.
private func withCStrings<Value>(
    _ strings: [String], _ body: (UnsafePointer<UnsafePointer<CChar>?>) -> Value
) -> Value {
    var arena: [CChar] = []
    var starts: [Int] = []
    for string in strings {
        starts.append(arena.count)
        arena.append(contentsOf: string.utf8.lazy.map { CChar(bitPattern: $0) })
        arena.append(0)
    }
    return arena.withUnsafeBufferPointer { arena in
        var pointers: [UnsafePointer<CChar>?] = starts.map { start in arena.baseAddress.map { $0 + start } }
        pointers.append(nil)
        return pointers.withUnsafeBufferPointer { pointers in
            guard let base = pointers.baseAddress else { preconditionFailure("an array with an element has no base") }
            return body(base)
        }
    }
}
