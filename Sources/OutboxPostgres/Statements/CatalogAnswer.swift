import OutboxCore
import Postgres

/// Reads the registries that `CatalogStatement` asks for.
enum CatalogAnswer {
    static func routes(_ result: PostgresResult) throws(PostgresError) -> [Route] {
        var routes: [Route] = []
        for row in 0..<result.rowCount {
            routes.append(
                Route(
                    number: try result.int2(row, 0), provider: try result.text(row, 1),
                    environment: try result.textOrNil(row, 2) ?? "", app: try result.text(row, 3)))
        }
        return routes
    }

    static func kinds(_ result: PostgresResult) throws(PostgresError) -> [Kind] {
        var kinds: [Kind] = []
        for row in 0..<result.rowCount { kinds.append(try kind(result, row)) }
        return kinds
    }

    /// One kind. What this worker cannot read of it, because a newer program declared it or somebody's hand did, makes
    /// that kind unreadable, and no other.
    private static func kind(_ result: PostgresResult, _ row: Int) throws(PostgresError) -> Kind {
        let retry = try result.textOrNil(row, 12)
        let policy = retry.flatMap(RetryText.policy)
        let keys = try keys(result, row)
        let name = try result.text(row, 2)
        let content = CatalogContent(try result.text(row, 3), presentation: name, keys: keys ?? [])
        let presentation: Presentation =
            if keys == nil {
                .unreadable("the type of a payload key")
            } else if (retry == nil) != (policy == nil) {
                .unreadable("its retry policy")
            } else {
                content?.presentation ?? .unreadable("its presentation or content")
            }
        return Kind(
            number: try result.int4(row, 0), name: try result.text(row, 1), presentation: presentation,
            keys: keys ?? [], container: content?.container ?? "", data: content?.data, fcmData: content?.fcmData,
            mappingVersion: try result.textOrNil(row, 15) ?? "", pushType: try result.text(row, 4),
            priority: Int(try result.int2(row, 5)), interruptionLevel: try result.textOrNil(row, 6),
            category: try result.textOrNil(row, 7), sound: try result.textOrNil(row, 8),
            usesThread: try result.bool(row, 9), isMutable: try result.bool(row, 10),
            providerLife: result.isNull(row, 11) ? nil : .milliseconds(try result.int8(row, 11)), retry: policy)
    }

    /// The payload's keys; nil when one is of a type that this worker does not know.
    private static func keys(_ result: PostgresResult, _ row: Int) throws(PostgresError) -> [PayloadKey]? {
        let names = try texts(result, row, 13)
        let types = try texts(result, row, 14)
        var keys: [PayloadKey] = []
        for (name, type) in zip(names, types) {
            guard let type = PayloadType(rawValue: type) else { return nil }
            keys.append(PayloadKey(name: name, type: type))
        }
        return keys
    }

    private static func texts(
        _ result: PostgresResult, _ row: Int, _ column: Int
    ) throws(PostgresError) -> [String] {
        try result.withArray(row, column, of: .text) { (reader: inout PostgresArrayReader) throws(PostgresError) in
            var texts: [String] = []
            for _ in 0..<reader.count { texts.append(try reader.nextText() ?? "") }
            return texts
        }
    }
}
