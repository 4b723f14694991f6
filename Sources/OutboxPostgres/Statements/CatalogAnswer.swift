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

    private static func kind(_ result: PostgresResult, _ row: Int) throws(PostgresError) -> Kind {
        let retry = try result.textOrNil(row, 12)
        let policy = retry.flatMap(RetryText.policy)
        guard (retry == nil) == (policy == nil) else { throw unreadable("retry policy") }
        let keys = try keys(result, row)
        let presentation = try result.text(row, 2)
        let content = CatalogContent(try result.text(row, 3), presentation: presentation, keys: keys)
        guard let content else { throw unreadable("content") }
        return Kind(
            number: try result.int4(row, 0), name: try result.text(row, 1), presentation: content.presentation,
            keys: keys, container: content.container, data: content.data, fcmData: content.fcmData,
            mappingVersion: try result.textOrNil(row, 15) ?? "", pushType: try result.text(row, 4),
            priority: Int(try result.int2(row, 5)), interruptionLevel: try result.textOrNil(row, 6),
            category: try result.textOrNil(row, 7), sound: try result.textOrNil(row, 8),
            usesThread: try result.bool(row, 9), isMutable: try result.bool(row, 10),
            providerLife: result.isNull(row, 11) ? nil : .milliseconds(try result.int8(row, 11)), retry: policy)
    }

    private static func keys(_ result: PostgresResult, _ row: Int) throws(PostgresError) -> [PayloadKey] {
        let names = try texts(result, row, 13)
        let types = try texts(result, row, 14)
        var keys: [PayloadKey] = []
        for (name, type) in zip(names, types) {
            guard let type = PayloadType(rawValue: type) else { throw unreadable("payload type") }
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

    private static func unreadable(_ what: String) -> PostgresError {
        PostgresError(.decoding, operation: "kinds", message: "a \(what) that this worker cannot read")
    }
}
