// swift-format-ignore-file
// Written by scripts/embed-migrations from sql/migrations; not edited by hand.

extension Migration {
    /// Every migration, in order.
    package static let all: [Migration] = [
        tables0001,
        catalog0002,
        outbox0003,
        devices0004,
        dispatch0005,
        views0006,
        facts0007,
        registration0008,
        operators0009,
        audit0010,
        rights0011,
        hooks0012,
        visibletext0013,
        content0014,
        codes0015,
        import0016,
        inbox0017,
        forget0018,
        retention0019,
        ledgerdays0020,
    ]
}
