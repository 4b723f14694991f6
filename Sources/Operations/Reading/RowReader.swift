import OutboxCore
import Postgres

/// Reads the columns of one row from left to right, in the order in which the statement names them.
struct RowReader {
    private let result: PostgresResult
    private let row: Int
    private var column = 0

    init(_ result: PostgresResult, row: Int) {
        self.result = result
        self.row = row
    }

    mutating func text() throws(PostgresError) -> String { try result.text(row, take()) }
    mutating func bool() throws(PostgresError) -> Bool { try result.bool(row, take()) }
    mutating func int2() throws(PostgresError) -> Int { Int(try result.int2(row, take())) }
    mutating func int4() throws(PostgresError) -> Int { Int(try result.int4(row, take())) }
    mutating func int8() throws(PostgresError) -> Int { Int(try result.int8(row, take())) }
    mutating func instant() throws(PostgresError) -> Timestamp {
        Timestamp(microseconds: try result.timestamp(row, take()))
    }
    mutating func identifier() throws(PostgresError) -> Identifier {
        let (high, low) = try result.uuid(row, take())
        return Identifier(high: high, low: low)
    }

    /// What `read` reads; nil where it is null.
    mutating func optional<Value>(
        _ read: (inout RowReader) throws(PostgresError) -> Value
    ) throws(PostgresError) -> Value? {
        guard !result.isNull(row, column) else {
            column += 1
            return nil
        }
        return try read(&self)
    }

    mutating func textOrNil() throws(PostgresError) -> String? {
        try optional { reader throws(PostgresError) in try reader.text() }
    }
    mutating func instantOrNil() throws(PostgresError) -> Timestamp? {
        try optional { reader throws(PostgresError) in try reader.instant() }
    }
    mutating func identifierOrNil() throws(PostgresError) -> Identifier? {
        try optional { reader throws(PostgresError) in try reader.identifier() }
    }
    mutating func int2OrNil() throws(PostgresError) -> Int? {
        try optional { reader throws(PostgresError) in try reader.int2() }
    }
    mutating func int4OrNil() throws(PostgresError) -> Int? {
        try optional { reader throws(PostgresError) in try reader.int4() }
    }

    private mutating func take() -> Int {
        defer { column += 1 }
        return column
    }
}
