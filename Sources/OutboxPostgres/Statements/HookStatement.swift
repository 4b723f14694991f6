import OutboxCore
import Postgres

/// What a worker loads of the hooks of kinds, and how it asks one.
enum HookStatement {
    /// Result: `kind`, `purpose` text, `timeout` int8 (milliseconds).
    static let list = PostgresStatement(
        "hooks",
        """
        SELECT h.kind, h.purpose, (extract(epoch FROM h.timeout) * 1000)::int8 AS timeout
        FROM postbell.hooks h
        ORDER BY h.kind, h.purpose
        """)

    static func hooks(_ result: PostgresResult) throws(PostgresError) -> [KindHook] {
        var hooks: [KindHook] = []
        for row in 0..<result.rowCount {
            guard let purpose = HookPurpose(rawValue: try result.text(row, 1)) else {
                throw PostgresError(.decoding, operation: "hooks", message: "a purpose that this worker does not know")
            }
            hooks.append(
                KindHook(
                    kind: try result.text(row, 0), purpose: purpose,
                    timeout: .milliseconds(try result.int8(row, 2))))
        }
        return hooks
    }

    // MARK: Asking

    /// Everything within one transaction that is rolled back: what a function has set or made is gone with it, also
    /// where a proxy hands the server's session to somebody else next, and nothing can be written.
    private static let begin = PostgresStatement("hook_begin", "BEGIN READ ONLY")
    private static let end = PostgresStatement("hook_end", "ROLLBACK")

    /// Parameter: $1 text timeout with its unit. Advisory locks that an earlier function has taken for the session
    /// outlive the rollback, and would keep whoever else asks for them waiting.
    private static let prepare = PostgresStatement(
        "hook_prepare",
        """
        SELECT
            pg_catalog.set_config('statement_timeout', $1::text, true),
            pg_catalog.set_config('lock_timeout', '1s', true),
            pg_catalog.pg_advisory_unlock_all()
        """, parameterTypes: [.text])

    /// Parameters: $1 text kind, $2 text purpose, $3 uuid[] notifications. Result: the ids that the function answered.
    private static let ask = PostgresStatement(
        "hook_ask", "SELECT h.id FROM postbell.ask_hook($1::text, $2::text, $3::uuid[]) h(id)",
        parameterTypes: [.text, .text, .uuid.array])

    /// The commands that ask these hooks one after the other, to be sent at once.
    static func commands(_ hooks: [KindHook], about notifications: [Identifier]) -> [PostgresCommand] {
        var identifiers = PostgresArray(of: .uuid, capacity: notifications.count)
        for notification in notifications { identifiers.append(notification) }
        var commands = [PostgresCommand(begin, PostgresParameters())]
        for hook in hooks {
            // The server counts a statement's time by what was set before it came.
            var limit = PostgresParameters()
            limit.append("\(hook.timeout.wholeMicroseconds / 1000)ms")
            commands.append(PostgresCommand(prepare, limit))
            var question = PostgresParameters()
            question.append(hook.kind)
            question.append(hook.purpose.rawValue)
            question.append(identifiers)
            commands.append(PostgresCommand(ask, question))
        }
        return commands + [PostgresCommand(end, PostgresParameters())]
    }

    /// The hooks' answers among those of `commands`.
    static func replies(
        _ results: [Result<PostgresResult, PostgresError>], to hooks: [KindHook]
    ) throws(HookFault) -> [HookReply] {
        guard results.count == 2 * hooks.count + 2 else { throw HookFault(nil, .unreachable) }
        if case .failure(let error) = results[0] { throw HookFault(hooks.first?.purpose, error) }
        var replies: [HookReply] = []
        for (index, hook) in hooks.enumerated() {
            do {
                _ = try results[2 * index + 1].get()
                replies.append(HookReply(hook.purpose, try identifiers(try results[2 * index + 2].get())))
            } catch {
                throw HookFault(hook.purpose, error)
            }
        }
        return replies
    }

    private static func identifiers(_ result: PostgresResult) throws(PostgresError) -> [Identifier?] {
        var identifiers: [Identifier?] = []
        identifiers.reserveCapacity(result.rowCount)
        for row in 0..<result.rowCount {
            identifiers.append(result.isNull(row, 0) ? nil : try result.identifier(row, 0))
        }
        return identifiers
    }
}

extension HookFault {
    /// What failed, without the server's words: an error that the app raised may say anything.
    init(_ purpose: HookPurpose?, _ error: PostgresError) {
        let state = error.sqlState?.code ?? ""
        let cause: Cause =
            switch (error.kind, state) {
            case (.deadline, _), (_, "57014"): .timeout
            case (_, "PB203"): .unusable
            case (_, "PB204"): .removed
            case (_, "42501"): .notPermitted
            case (.server, _): .raised
            default: .unreachable
            }
        self.init(purpose, cause, sqlState: state)
    }
}
