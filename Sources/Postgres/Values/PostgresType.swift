/// A PostgreSQL data type by its object identifier (`pg_type.oid`; the built-in ones never change).
package struct PostgresType: Sendable, Hashable, CustomStringConvertible {
    /// The object identifier; 0 lets the server infer the type of a parameter.
    package let oid: UInt32

    /// Any type by its identifier.
    package init(oid: UInt32) {
        self.oid = oid
    }

    /// The server infers the type from the statement, as for `$1::delivery_outcome`. An enum's label travels as text.
    package static let inferred = PostgresType(oid: 0)
    /// Truth value, one byte.
    package static let bool = PostgresType(oid: 16)
    /// Byte string.
    package static let bytea = PostgresType(oid: 17)
    /// The one-byte type `"char"`.
    package static let char = PostgresType(oid: 18)
    /// Name of an object of the database, text.
    package static let name = PostgresType(oid: 19)
    /// Integer of 8 bytes.
    package static let int8 = PostgresType(oid: 20)
    /// Integer of 2 bytes.
    package static let int2 = PostgresType(oid: 21)
    /// Integer of 4 bytes.
    package static let int4 = PostgresType(oid: 23)
    /// Text, UTF-8.
    package static let text = PostgresType(oid: 25)
    /// The type `oid` itself.
    package static let objectIdentifier = PostgresType(oid: 26)
    /// JSON kept as its text.
    package static let json = PostgresType(oid: 114)
    /// Binary floating point of 8 bytes.
    package static let float8 = PostgresType(oid: 701)
    /// Type of a literal that nothing has given a type.
    package static let unknown = PostgresType(oid: 705)
    /// Text of a fixed length (`character(n)`).
    package static let bpchar = PostgresType(oid: 1042)
    /// Text with a length limit.
    package static let varchar = PostgresType(oid: 1043)
    /// Instant, µs on the server's time line.
    package static let timestamptz = PostgresType(oid: 1184)
    /// Span of time: months, days, µs.
    package static let interval = PostgresType(oid: 1186)
    /// Bit string.
    package static let varbit = PostgresType(oid: 1562)
    /// UUID, 16 bytes.
    package static let uuid = PostgresType(oid: 2950)
    /// JSON kept parsed; in binary format a version byte and its text.
    package static let jsonb = PostgresType(oid: 3802)

    /// The type of a one-dimensional array of this type, for the types a `PostgresArray` can hold.
    package var array: PostgresType {
        guard let entry = Self.arrays[oid] else { preconditionFailure("no array type is known for \(self)") }
        return PostgresType(oid: entry)
    }

    /// Array types by the type of their elements.
    private static let arrays: [UInt32: UInt32] = [
        16: 1000, 17: 1001, 18: 1002, 20: 1016, 21: 1005, 23: 1007, 25: 1009, 114: 199, 701: 1022, 1184: 1185,
        1186: 1187, 1562: 1563, 2950: 2951, 3802: 3807,
    ]

    private static let names: [UInt32: String] = [
        0: "inferred", 16: "bool", 17: "bytea", 18: "\"char\"", 19: "name", 20: "int8", 21: "int2", 23: "int4",
        25: "text", 26: "oid", 114: "json", 701: "float8", 705: "unknown", 1042: "bpchar", 1043: "varchar",
        1184: "timestamptz", 1186: "interval", 1562: "varbit", 2950: "uuid", 3802: "jsonb",
    ]

    /// Whether values of the type travel as plain text in the binary format. User-defined types count: enums do.
    var isText: Bool {
        switch self {
        case .text, .varchar, .bpchar, .name, .json, .unknown, .char: true
        default: oid >= Self.firstUserDefined
        }
    }

    /// Identifiers from here on belong to objects that users made (FirstNormalObjectId of the server).
    private static let firstUserDefined: UInt32 = 16_384

    package var description: String { Self.names[oid] ?? "type \(oid)" }
}
