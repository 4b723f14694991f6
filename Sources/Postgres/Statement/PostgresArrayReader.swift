/// Reads the elements of a one-dimensional array in order, in place; see `PostgresResult.withArray`.
///
/// Each `next…` answers nil for a null element. Reading past `count`, or an element of another size than its type, is
/// thrown as an error of kind `decoding`. Valid only inside the closure it was given to.
package struct PostgresArrayReader: ~Copyable {
    /// How many elements the array has, nulls included.
    package let count: Int
    private let column: String
    private let bytes: UnsafeRawBufferPointer
    private let elementType: PostgresType
    private var position: Int
    private var taken = 0

    /// Nil unless `bytes` begin as an array of at most one dimension with elements of that type (`array_send` in the
    /// server's arrayfuncs.c: dimensions, null flag, element type, then length and lower bound).
    init?(_ bytes: UnsafeRawBufferPointer, elementType: PostgresType, column: String) {
        guard bytes.count >= 12 else { return nil }
        let dimensions: Int32 = loadBigEndian(bytes, at: 0)
        let oid: UInt32 = loadBigEndian(bytes, at: 8)
        let isExpected = oid == elementType.oid || (elementType == .text && PostgresType(oid: oid).isText)
        guard isExpected, dimensions == 0 || (dimensions == 1 && bytes.count >= 20) else { return nil }
        let length: Int32 = dimensions == 0 ? 0 : loadBigEndian(bytes, at: 12)
        guard length >= 0 else { return nil }
        count = Int(length)
        position = dimensions == 0 ? 12 : 20
        self.bytes = bytes
        self.column = column
        self.elementType = elementType
    }

    /// The next element of an `int2` array.
    package mutating func nextInt2() throws(PostgresError) -> Int16? {
        try nextFixed(.int2, UInt16.self).map { Int16(bitPattern: $0) }
    }

    /// The next element of an `int4` array.
    package mutating func nextInt4() throws(PostgresError) -> Int32? {
        try nextFixed(.int4, UInt32.self).map { Int32(bitPattern: $0) }
    }

    /// The next element of an `int8` array.
    package mutating func nextInt8() throws(PostgresError) -> Int64? {
        try nextFixed(.int8, UInt64.self).map { Int64(bitPattern: $0) }
    }

    /// The next element of a `bool` array.
    package mutating func nextBool() throws(PostgresError) -> Bool? {
        try nextFixed(.bool, UInt8.self).map { $0 != 0 }
    }

    /// The next element of a `float8` array.
    package mutating func nextFloat8() throws(PostgresError) -> Double? {
        try nextFixed(.float8, UInt64.self).map { Double(bitPattern: $0) }
    }

    /// The next element of a `uuid` array: its upper and its lower 64 bits.
    package mutating func nextUUID() throws(PostgresError) -> (UInt64, UInt64)? {
        guard let element = try next(.uuid, length: 16) else { return nil }
        return (loadBigEndian(element, at: 0), loadBigEndian(element, at: 8))
    }

    /// The next element of a `timestamptz` array, in µs since 1970.
    package mutating func nextTimestamp() throws(PostgresError) -> Int64? {
        guard let time = try nextFixed(.timestamptz, UInt64.self) else { return nil }
        guard let converted = timeSince1970(Int64(bitPattern: time)) else { throw error("a time is too late") }
        return converted
    }

    /// The next element of a `text` array.
    package mutating func nextText() throws(PostgresError) -> String? {
        try next(.text, length: nil).map { String(decoding: $0, as: UTF8.self) }
    }

    /// Appends the next element of a `text` or `bytea` array to `arena`; answers where it lies.
    package mutating func appendNext(to arena: inout [UInt8]) throws(PostgresError) -> Range<Int>? {
        precondition(elementType == .text || elementType == .bytea, "only texts and byte strings are appended")
        guard let element = try next(elementType, length: nil) else { return nil }
        let start = arena.count
        arena.append(contentsOf: element)
        return start..<arena.count
    }

    private mutating func nextFixed<Number: FixedWidthInteger>(
        _ type: PostgresType, _: Number.Type
    ) throws(PostgresError) -> Number? {
        try next(type, length: Number.bitWidth / 8).map { loadBigEndian($0, at: 0) }
    }

    private mutating func next(_ type: PostgresType, length: Int?) throws(PostgresError) -> UnsafeRawBufferPointer? {
        precondition(type == elementType, "an element of type \(type) is read from an array of \(elementType)")
        guard taken < count, position + 4 <= bytes.count else { throw error("the array has no further element") }
        let size: Int32 = loadBigEndian(bytes, at: position)
        position += 4
        taken += 1
        guard size >= 0 else { return nil }
        guard length == nil || length == Int(size), position + Int(size) <= bytes.count else {
            throw error("an element has a wrong length")
        }
        defer { position += Int(size) }
        return UnsafeRawBufferPointer(rebasing: bytes[position..<position + Int(size)])
    }

    private func error(_ message: String) -> PostgresError {
        PostgresError(.decoding, operation: "array", message: "column \(column): \(message)")
    }
}
