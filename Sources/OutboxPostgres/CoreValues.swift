import OutboxCore
import Postgres

/// Values of the core in parameters and results.
extension PostgresParameters {
    mutating func append(_ identifier: Identifier) {
        append(uuid: (identifier.high, identifier.low))
    }

    mutating func append(_ timestamp: Timestamp) {
        append(timestamp: timestamp.microseconds)
    }
}

extension PostgresArray {
    mutating func append(_ identifier: Identifier) {
        append(uuid: (identifier.high, identifier.low))
    }

    mutating func append(_ timestamp: Timestamp) {
        append(timestamp: timestamp.microseconds)
    }

    /// A text, or null where it is empty.
    mutating func append(textOrNull text: String) {
        if text.isEmpty { appendNull() } else { append(text) }
    }

    /// An array of `uuid`.
    init(_ identifiers: some Collection<Identifier>) {
        self.init(of: .uuid, capacity: identifiers.count)
        for identifier in identifiers { append(identifier) }
    }

    /// An array of `int2`.
    init(_ values: some Collection<Int16>) {
        self.init(of: .int2, capacity: values.count)
        for value in values { append(value) }
    }
}

extension PostgresResult {
    func identifier(_ row: Int, _ column: Int) throws(PostgresError) -> Identifier {
        let (high, low) = try uuid(row, column)
        return Identifier(high: high, low: low)
    }

    func instant(_ row: Int, _ column: Int) throws(PostgresError) -> Timestamp {
        Timestamp(microseconds: try timestamp(row, column))
    }

    func textOrNil(_ row: Int, _ column: Int) throws(PostgresError) -> String? {
        isNull(row, column) ? nil : try text(row, column)
    }

    /// Appends a text to a batch's buffer; the empty range for null.
    func range(_ row: Int, _ column: Int, in buffer: inout [UInt8]) throws(PostgresError) -> TextRange {
        guard !isNull(row, column) else { return 0..<0 }
        let range = try append(row, column, to: &buffer)
        guard range.upperBound <= Int(Int32.max) else {
            throw PostgresError(.decoding, operation: "claim", message: "the answer is larger than 2 GiB")
        }
        return Int32(range.lowerBound)..<Int32(range.upperBound)
    }
}
