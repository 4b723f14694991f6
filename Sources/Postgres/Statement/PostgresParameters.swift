/// The values of a statement's parameters, in order, in binary format and in one buffer.
///
/// Reusable: `removeAll()` keeps the memory. Appending a value of a type that the statement does not declare at that
/// place is a programmer's mistake and stops the process when the statement is sent.
package struct PostgresParameters: Sendable {
    /// Where each value lies in `buffer`; a length of -1 is a null.
    private(set) var offsets: [Int] = []
    private(set) var lengths: [Int32] = []
    private(set) var types: [PostgresType] = []
    private(set) var buffer = WireBuffer()

    /// No values yet.
    package init() {}

    /// How many values have been appended.
    package var count: Int { offsets.count }

    /// Forgets the values and keeps the memory.
    package mutating func removeAll() {
        offsets.removeAll(keepingCapacity: true)
        lengths.removeAll(keepingCapacity: true)
        types.removeAll(keepingCapacity: true)
        buffer.removeAll()
    }

    /// A null of any type.
    package mutating func appendNull() {
        offsets.append(buffer.count)
        lengths.append(-1)
        types.append(.inferred)
    }

    /// An `int2`.
    package mutating func append(_ value: Int16) {
        append(.int2) { $0.append(value) }
    }

    /// An `int4`.
    package mutating func append(_ value: Int32) {
        append(.int4) { $0.append(value) }
    }

    /// An `int8`.
    package mutating func append(_ value: Int64) {
        append(.int8) { $0.append(value) }
    }

    /// A `bool`.
    package mutating func append(_ value: Bool) {
        append(.bool) { $0.append(value ? UInt8(1) : 0) }
    }

    /// A `float8`.
    package mutating func append(_ value: Double) {
        append(.float8) { $0.append(value.bitPattern) }
    }

    /// A `text` (also `json`, or an enum's label where the statement leaves the type to be inferred). The server
    /// refuses a zero byte in it.
    package mutating func append(_ value: String) {
        append(.text) { $0.append(value.utf8) }
    }

    /// A `text` from UTF-8 bytes.
    package mutating func append(text bytes: some Collection<UInt8>) {
        append(.text) { $0.append(bytes) }
    }

    /// A `bytea`.
    package mutating func append(bytes: some Collection<UInt8>) {
        append(.bytea) { $0.append(bytes) }
    }

    /// A `jsonb` from its JSON text in UTF-8.
    package mutating func append(jsonb text: some Collection<UInt8>) {
        append(.jsonb) { buffer in
            buffer.append(UInt8(1))
            buffer.append(text)
        }
    }

    /// A `uuid`: its upper and its lower 64 bits.
    package mutating func append(uuid: (UInt64, UInt64)) {
        append(.uuid) { $0.append(uuid: uuid) }
    }

    /// A `timestamptz` in µs since 1970; the extremes of `Int64` are `infinity` and `-infinity`.
    package mutating func append(timestamp microsecondsSince1970: Int64) {
        append(.timestamptz) { $0.append(timestamp: microsecondsSince1970) }
    }

    /// An `interval` of whole µs.
    package mutating func append(_ duration: Duration) {
        append(.interval) { $0.append(interval: duration) }
    }

    /// A `varbit`.
    package mutating func append(_ bits: PostgresBits) {
        append(.varbit) { $0.append(bits: bits) }
    }

    /// A one-dimensional array.
    package mutating func append(_ array: PostgresArray) {
        append(array.elementType.array) { array.write(to: &$0) }
    }

    private mutating func append(_ type: PostgresType, _ write: (inout WireBuffer) -> Void) {
        let offset = buffer.count
        write(&buffer)
        offsets.append(offset)
        lengths.append(Int32(buffer.count - offset))
        types.append(type)
    }

    /// Holds the caller to what the statement declares.
    func requireMatch(_ statement: PostgresStatement) {
        precondition(
            count == statement.parameterTypes.count,
            "\(statement.name) takes \(statement.parameterTypes.count) parameters, \(count) were given")
        for (index, declared) in statement.parameterTypes.enumerated() where lengths[index] >= 0 {
            precondition(
                types[index] == declared || declared == .inferred || (types[index] == .text && declared.isText),
                "parameter $\(index + 1) of \(statement.name) is \(declared), \(types[index]) was given")
        }
    }
}
