/// A one-dimensional array parameter, built element by element into one buffer.
///
/// Made for a thousand elements and more: an element costs its bytes and no allocation. Several arrays can be filled
/// side by side, row by row. `removeAll()` keeps the memory.
package struct PostgresArray: Sendable {
    /// The type of the elements.
    package let elementType: PostgresType
    /// How many elements there are, nulls included.
    package private(set) var count = 0
    private var hasNull = false
    private var elements = WireBuffer()

    /// An empty array with room for `capacity` elements.
    package init(of elementType: PostgresType, capacity: Int = 0) {
        self.elementType = elementType
        elements.reserve(capacity * 12)
    }

    /// An array of `int8`.
    package init(_ values: some Collection<Int64>) {
        self.init(of: .int8, capacity: values.count)
        for value in values { append(value) }
    }

    /// An array of `int4`.
    package init(_ values: some Collection<Int32>) {
        self.init(of: .int4, capacity: values.count)
        for value in values { append(value) }
    }

    /// An array of `text`.
    package init(_ values: some Collection<String>) {
        self.init(of: .text, capacity: values.count)
        for value in values { append(value) }
    }

    /// Forgets the elements and keeps the memory.
    package mutating func removeAll() {
        count = 0
        hasNull = false
        elements.removeAll()
    }

    /// A null of the element's type.
    package mutating func appendNull() {
        count += 1
        hasNull = true
        elements.append(Int32(-1))
    }

    /// Nulls until there are `count` elements.
    package mutating func appendNulls(upTo count: Int) {
        while self.count < count { appendNull() }
    }

    /// An `int2`.
    package mutating func append(_ value: Int16) {
        begin(.int2, length: 2)
        elements.append(value)
    }

    /// An `int4`.
    package mutating func append(_ value: Int32) {
        begin(.int4, length: 4)
        elements.append(value)
    }

    /// An `int8`.
    package mutating func append(_ value: Int64) {
        begin(.int8, length: 8)
        elements.append(value)
    }

    /// A `bool`.
    package mutating func append(_ value: Bool) {
        begin(.bool, length: 1)
        elements.append(value ? UInt8(1) : 0)
    }

    /// A `float8`.
    package mutating func append(_ value: Double) {
        begin(.float8, length: 8)
        elements.append(value.bitPattern)
    }

    /// A `text`.
    package mutating func append(_ value: String) {
        begin(.text, length: value.utf8.count)
        elements.append(value.utf8)
    }

    /// A `text` from UTF-8 bytes.
    package mutating func append(text bytes: some Collection<UInt8>) {
        begin(.text, length: bytes.count)
        elements.append(bytes)
    }

    /// A `bytea`.
    package mutating func append(bytes: some Collection<UInt8>) {
        begin(.bytea, length: bytes.count)
        elements.append(bytes)
    }

    /// A `jsonb` from its JSON text in UTF-8.
    package mutating func append(jsonb text: some Collection<UInt8>) {
        begin(.jsonb, length: text.count + 1)
        elements.append(UInt8(1))
        elements.append(text)
    }

    /// A `uuid`: its upper and its lower 64 bits.
    package mutating func append(uuid: (UInt64, UInt64)) {
        begin(.uuid, length: 16)
        elements.append(uuid: uuid)
    }

    /// A `timestamptz` in µs since 1970; the extremes of `Int64` are `infinity` and `-infinity`.
    package mutating func append(timestamp microsecondsSince1970: Int64) {
        begin(.timestamptz, length: 8)
        elements.append(timestamp: microsecondsSince1970)
    }

    /// An `interval` of whole µs.
    package mutating func append(_ duration: Duration) {
        begin(.interval, length: 16)
        elements.append(interval: duration)
    }

    /// A `varbit`.
    package mutating func append(_ bits: PostgresBits) {
        begin(.varbit, length: 4 + bits.bytes.count)
        elements.append(bits: bits)
    }

    private mutating func begin(_ type: PostgresType, length: Int) {
        precondition(type == elementType, "an element of type \(type) in an array of \(elementType)")
        count += 1
        elements.append(Int32(length))
    }

    /// The array in binary format: dimensions, null flag, element type, length, lower bound, elements
    /// (`array_recv` in the server's arrayfuncs.c). An empty array has no dimension.
    func write(to buffer: inout WireBuffer) {
        buffer.reserve(buffer.count + 20 + elements.count)
        buffer.append(Int32(count == 0 ? 0 : 1))
        buffer.append(Int32(hasNull ? 1 : 0))
        buffer.append(elementType.oid)
        guard count > 0 else { return }
        buffer.append(Int32(count))
        buffer.append(Int32(1))
        buffer.append(elements.bytes)
    }
}
