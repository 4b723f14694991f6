/// Bytes in network order, as the binary formats of PostgreSQL want them.
struct WireBuffer: Sendable {
    private(set) var bytes: [UInt8] = []

    var count: Int { bytes.count }

    mutating func reserve(_ count: Int) {
        bytes.reserveCapacity(count)
    }

    mutating func removeAll() {
        bytes.removeAll(keepingCapacity: true)
    }

    mutating func append<Number: FixedWidthInteger>(_ number: Number) {
        withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
    }

    mutating func append(_ value: some Collection<UInt8>) {
        bytes.append(contentsOf: value)
    }

    /// Writes `number` over the bytes at `offset`.
    mutating func replace<Number: FixedWidthInteger>(at offset: Int, with number: Number) {
        bytes.withUnsafeMutableBytes { buffer in
            withUnsafeBytes(of: number.bigEndian) { number in
                for index in 0..<number.count { buffer[offset + index] = number[index] }
            }
        }
    }

    mutating func append(interval duration: Duration) {
        append(microseconds(of: duration))
        append(Int32(0))
        append(Int32(0))
    }

    mutating func append(bits: PostgresBits) {
        append(Int32(bits.count))
        bytes.append(contentsOf: bits.bytes)
    }

    mutating func append(uuid: (UInt64, UInt64)) {
        append(uuid.0)
        append(uuid.1)
    }

    mutating func append(timestamp microsecondsSince1970: Int64) {
        append(serverTimestamp(microsecondsSince1970))
    }
}

/// From 1970 to 2000, from where PostgreSQL counts: 10,957 days, in µs.
let serverEpoch: Int64 = 946_684_800_000_000

/// The server's form of a time in µs since 1970. The extremes of `Int64` are its `infinity` and `-infinity`.
private func serverTimestamp(_ time: Int64) -> Int64 {
    if time == .max || time == .min { return time }
    let (result, overflow) = time.subtractingReportingOverflow(serverEpoch)
    precondition(!overflow, "a timestamp lies before what PostgreSQL can hold")
    return result
}

/// Whole µs of a duration, cut towards zero; beyond ±292,000 years it is clamped.
private func microseconds(of duration: Duration) -> Int64 {
    let (seconds, attoseconds) = duration.components
    let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000)
    if overflow { return seconds < 0 ? .min : .max }
    let (sum, carried) = product.addingReportingOverflow(attoseconds / 1_000_000_000_000)
    return carried ? (seconds < 0 ? .min : .max) : sum
}
