import CLibPQ

/// The rows that a statement returned, read in place: an accessor copies nothing but the value it returns.
///
/// Rows and columns count from 0; an index out of range is a programmer's mistake. A value of another type than the
/// accessor's, or a null, is thrown as an error of kind `decoding`. The rows live as long as this object.
package final class PostgresResult: Sendable {
    /// The `PGresult`, as a number because pointers are not `Sendable`. Once complete a `PGresult` does not change,
    /// so any thread may read it; it is freed in `deinit` and nowhere else.
    private let address: UInt
    private let operation: String
    /// How many rows there are.
    package let rowCount: Int
    /// How many columns each row has.
    package let columnCount: Int

    /// Takes the ownership of `result`.
    init(owning result: OpaquePointer, operation: String) {
        address = UInt(bitPattern: result)
        self.operation = operation
        rowCount = Int(PQntuples(result))
        columnCount = Int(PQnfields(result))
    }

    deinit {
        PQclear(pointer)
    }

    private var pointer: OpaquePointer? { OpaquePointer(bitPattern: address) }

    /// How many rows the statement inserted, updated, deleted or selected.
    package var affectedRows: Int {
        PQcmdTuples(pointer).flatMap { Int(String(cString: $0)) } ?? 0
    }

    /// The name of a column as the statement gave it.
    package func columnName(_ column: Int) -> String {
        PQfname(pointer, Int32(column)).map { String(cString: $0) } ?? "\(column)"
    }

    /// The type of a column.
    package func columnType(_ column: Int) -> PostgresType {
        PostgresType(oid: PQftype(pointer, Int32(column)))
    }

    /// Whether the value is null.
    package func isNull(_ row: Int, _ column: Int) -> Bool {
        requireIndices(row, column)
        return PQgetisnull(pointer, Int32(row), Int32(column)) != 0
    }

    // MARK: Values

    /// A `bool`.
    package func bool(_ row: Int, _ column: Int) throws(PostgresError) -> Bool {
        try fixed(row, column, .bool, UInt8.self) != 0
    }

    /// An `int2`.
    package func int2(_ row: Int, _ column: Int) throws(PostgresError) -> Int16 {
        Int16(bitPattern: try fixed(row, column, .int2, UInt16.self))
    }

    /// An `int4`.
    package func int4(_ row: Int, _ column: Int) throws(PostgresError) -> Int32 {
        Int32(bitPattern: try fixed(row, column, .int4, UInt32.self))
    }

    /// An `int8`.
    package func int8(_ row: Int, _ column: Int) throws(PostgresError) -> Int64 {
        Int64(bitPattern: try fixed(row, column, .int8, UInt64.self))
    }

    /// A `float8`.
    package func float8(_ row: Int, _ column: Int) throws(PostgresError) -> Double {
        Double(bitPattern: try fixed(row, column, .float8, UInt64.self))
    }

    /// A `uuid`: its upper and its lower 64 bits.
    package func uuid(_ row: Int, _ column: Int) throws(PostgresError) -> (UInt64, UInt64) {
        let bytes = try field(row, column, .uuid, length: 16)
        return (loadBigEndian(bytes, at: 0), loadBigEndian(bytes, at: 8))
    }

    /// A `timestamptz` in µs since 1970; `infinity` and `-infinity` are the extremes of `Int64`.
    package func timestamp(_ row: Int, _ column: Int) throws(PostgresError) -> Int64 {
        let time = Int64(bitPattern: try fixed(row, column, .timestamptz, UInt64.self))
        guard let converted = timeSince1970(time) else {
            throw decodingError(column, "the time is later than can be counted in µs since 1970")
        }
        return converted
    }

    /// An `interval` without months; its days count 24 hours.
    package func duration(_ row: Int, _ column: Int) throws(PostgresError) -> Duration {
        let bytes = try field(row, column, .interval, length: 16)
        let microseconds: Int64 = loadBigEndian(bytes, at: 0)
        let days: Int32 = loadBigEndian(bytes, at: 8)
        let months: Int32 = loadBigEndian(bytes, at: 12)
        guard months == 0 else { throw decodingError(column, "an interval with months has no fixed length") }
        return .microseconds(microseconds) + .seconds(Int64(days) * 86_400)
    }

    /// A `bit varying`.
    package func bits(_ row: Int, _ column: Int) throws(PostgresError) -> PostgresBits {
        let bytes = try field(row, column, .varbit, length: nil)
        guard bytes.count >= 4 else { throw decodingError(column, "a bit string lacks its length") }
        let count: Int32 = loadBigEndian(bytes, at: 0)
        guard count >= 0, bytes.count == 4 + (Int(count) + 7) / 8 else {
            throw decodingError(column, "a bit string has a wrong length")
        }
        return PostgresBits(count: Int(count), bytes: bytes.dropFirst(4))
    }

    /// A `text` and its kin, the label of an enum, or any value of `execute(_:)`, whose results are text.
    package func text(_ row: Int, _ column: Int) throws(PostgresError) -> String {
        String(decoding: try textField(row, column), as: UTF8.self)
    }

    /// Passes the UTF-8 of a text (see `text(_:_:)`) or the text of a `jsonb` to `body`, in place.
    package func withText<Value>(
        _ row: Int, _ column: Int, _ body: (UnsafeRawBufferPointer) throws(PostgresError) -> Value
    ) throws(PostgresError) -> Value {
        try body(try textField(row, column))
    }

    /// Appends the UTF-8 of a text, the text of a `jsonb` or the bytes of a `bytea` to `arena`; answers where they lie.
    package func append(
        _ row: Int, _ column: Int, to arena: inout [UInt8]
    ) throws(PostgresError) -> Range<Int> {
        let start = arena.count
        let bytes = isBytes(column) ? try field(row, column, .bytea, length: nil) : try textField(row, column)
        arena.append(contentsOf: bytes)
        return start..<arena.count
    }

    /// A `bytea`.
    package func bytes(_ row: Int, _ column: Int) throws(PostgresError) -> [UInt8] {
        [UInt8](try field(row, column, .bytea, length: nil))
    }

    /// Passes a reader over the elements of a one-dimensional array of `elementType` to `body`, in place.
    package func withArray<Value>(
        _ row: Int, _ column: Int, of elementType: PostgresType,
        _ body: (inout PostgresArrayReader) throws(PostgresError) -> Value
    ) throws(PostgresError) -> Value {
        let bytes = try field(row, column, nil, length: nil)
        guard PQfformat(pointer, Int32(column)) == 1 else { throw decodingError(column, "it came as text") }
        guard var reader = PostgresArrayReader(bytes, elementType: elementType, column: columnName(column)) else {
            throw decodingError(column, "expected a one-dimensional array of \(elementType)")
        }
        return try body(&reader)
    }

    // MARK: Fields

    private func isBytes(_ column: Int) -> Bool {
        columnType(column) == .bytea
    }

    private func textField(_ row: Int, _ column: Int) throws(PostgresError) -> UnsafeRawBufferPointer {
        let bytes = try field(row, column, nil, length: nil)
        guard PQfformat(pointer, Int32(column)) == 1 else { return bytes }
        let type = columnType(column)
        if type == .jsonb, bytes.first == 1 { return UnsafeRawBufferPointer(rebasing: bytes[1...]) }
        guard type.isText else { throw decodingError(column, "expected text, got \(type)") }
        return bytes
    }

    private func fixed<Number: FixedWidthInteger & UnsignedInteger>(
        _ row: Int, _ column: Int, _ type: PostgresType, _: Number.Type
    ) throws(PostgresError) -> Number {
        loadBigEndian(try field(row, column, type, length: Number.bitWidth / 8), at: 0)
    }

    /// The bytes of a value that is not null. With a `type` the value must be of that type and in binary format.
    private func field(
        _ row: Int, _ column: Int, _ type: PostgresType?, length: Int?
    ) throws(PostgresError) -> UnsafeRawBufferPointer {
        requireIndices(row, column)
        let (row, column) = (Int32(row), Int32(column))
        if let type {
            guard PQftype(pointer, column) == type.oid else {
                throw decodingError(Int(column), "expected \(type), got \(columnType(Int(column)))")
            }
            guard PQfformat(pointer, column) == 1 else { throw decodingError(Int(column), "it came as text") }
        }
        let count = Int(PQgetlength(pointer, row, column))
        if count == 0 && PQgetisnull(pointer, row, column) != 0 { throw decodingError(Int(column), "it is null") }
        guard length == nil || length == count else { throw decodingError(Int(column), "it has \(count) bytes") }
        return UnsafeRawBufferPointer(start: PQgetvalue(pointer, row, column), count: count)
    }

    private func requireIndices(_ row: Int, _ column: Int) {
        precondition(row >= 0 && row < rowCount, "row \(row) of \(rowCount) in the result of \(operation)")
        precondition(column >= 0 && column < columnCount, "column \(column) in the result of \(operation)")
    }

    private func decodingError(_ column: Int, _ message: String) -> PostgresError {
        PostgresError(.decoding, operation: operation, message: "column \(columnName(column)): \(message)")
    }
}

/// The number in network order at `offset`.
func loadBigEndian<Number: FixedWidthInteger>(_ bytes: UnsafeRawBufferPointer, at offset: Int) -> Number {
    Number(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: Number.self))
}

/// A server's time in µs since 1970; nil if it is too late for that.
func timeSince1970(_ serverTime: Int64) -> Int64? {
    if serverTime == .max || serverTime == .min { return serverTime }
    let (result, overflow) = serverTime.addingReportingOverflow(serverEpoch)
    return overflow ? nil : result
}
