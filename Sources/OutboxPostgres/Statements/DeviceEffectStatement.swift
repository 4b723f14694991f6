import OutboxCore
import Postgres

/// What answers do to devices: a statement of its own after the settle, that waits for nobody (see migration 0004).
///
/// Parameters, one element per effect: $1 int8[] devices, $2 int4[] which token was sent, $3 int2[] change (0
/// succeeded, 1 failed, 2 token invalid), $4 timestamptz[] as of (a token registered after it lives on), $5 uuid[]
/// notifications; for all, $6 int4 failures in a row that clear a token (0: never).
/// Result: `ordinal` int2 (from 1), `state` int2: 1 applied, 0 no longer true, 2 locked by somebody.
enum DeviceEffectStatement {
    static let statement = PostgresStatement(
        "device_effects", text,
        parameterTypes: [
            .int8.array, .int4.array, .int2.array, .timestamptz.array, .uuid.array, .int4,
        ])

    static let text = """
        SELECT ordinal, state
        FROM postbell.device_effects($1::int8[], $2::int4[], $3::int2[], $4::timestamptz[], $5::uuid[], $6::int4)
        """

    static func command(_ effects: [DeviceEffect], maxFailures: Int) -> PostgresCommand {
        var devices = PostgresArray(of: .int8, capacity: effects.count)
        var tokenSequences = PostgresArray(of: .int4, capacity: effects.count)
        var changes = PostgresArray(of: .int2, capacity: effects.count)
        var instants = PostgresArray(of: .timestamptz, capacity: effects.count)
        var notifications = PostgresArray(of: .uuid, capacity: effects.count)
        for effect in effects {
            devices.append(effect.device)
            tokenSequences.append(effect.tokenSequence)
            changes.append(effect.change.rawValue)
            instants.append(effect.asOf)
            notifications.append(effect.notification)
        }
        var parameters = PostgresParameters()
        for array in [devices, tokenSequences, changes, instants, notifications] { parameters.append(array) }
        parameters.append(Int32(clamping: maxFailures))
        return PostgresCommand(statement, parameters)
    }

    /// Indices of the effects whose device somebody had locked, ascending.
    static func locked(_ result: PostgresResult) throws(PostgresError) -> [Int] {
        var locked: [Int] = []
        for row in 0..<result.rowCount where try result.int2(row, 1) == 2 {
            locked.append(Int(try result.int2(row, 0)) - 1)
        }
        return locked.sorted()
    }
}
