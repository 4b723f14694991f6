/// What answers do to devices: a statement of its own after the settle, that waits for nobody (see migration 0004).
///
/// Parameters, one element per effect: $1 int8[] devices, $2 int4[] which token was sent, $3 int2[] change (0
/// succeeded, 1 failed, 2 token invalid), $4 timestamptz[] as of (a token registered after it lives on), $5 uuid[]
/// notifications.
/// Result: `ordinal` int2 (from 1), `state` int2: 1 applied, 0 no longer true, 2 locked by somebody.
enum DeviceEffectStatement {
    static let name = "device_effects"

    static let text = """
        SELECT ordinal, state
        FROM postbell.device_effects($1::int8[], $2::int4[], $3::int2[], $4::timestamptz[], $5::uuid[])
        """
}
