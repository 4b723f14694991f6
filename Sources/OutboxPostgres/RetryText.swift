import OutboxCore

/// The catalog's form of a retry policy: a list of waits such as `30s,2m,10m,1h`, or base and cap such as `2s..5m`.
enum RetryText {
    /// The policy; nil for anything else.
    static func policy(_ text: String) -> RetryPolicy? {
        let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        if parts.count == 3, parts[1].isEmpty, let base = duration(parts[0]), let cap = duration(parts[2]) {
            return base > .zero && cap >= base ? .exponential(base: base, cap: cap) : nil
        }
        var waits: [Duration] = []
        for part in text.utf8.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false) {
            guard let wait = duration(part) else { return nil }
            waits.append(wait)
        }
        return .list(waits)
    }

    private static func duration(_ text: Substring.UTF8View) -> Duration? {
        let digits = text.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        guard let number = Int64(Substring(digits)), number <= 100_000_000 else { return nil }
        switch String(Substring(text.dropFirst(digits.count))) {
        case "ms": return .milliseconds(number)
        case "s": return .seconds(number)
        case "m": return .seconds(number * 60)
        case "h": return .seconds(number * 3600)
        case "d": return .seconds(number * 86_400)
        default: return nil
        }
    }
}
