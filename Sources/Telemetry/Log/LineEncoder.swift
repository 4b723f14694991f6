/// Turns events into lines.
struct LineEncoder {
    /// The longest line with its line feed: what a pipe takes whole (`PIPE_BUF` on Linux), so lines of several writers
    /// never mix and a writable pipe never blocks.
    static let longestLine = 4096
    /// The longest text of one field, in bytes before escaping.
    static let longestText = 1024

    let format: LogFormat
    /// Whether each line begins with journald's `<N>`.
    let hasPriorities: Bool

    /// The line of `event`, its line feed included. A field without text says nothing and is left out; so are fields
    /// that no longer fit, and then `cut` says so.
    func encode(_ event: LogEvent) -> [UInt8] {
        var line: [UInt8] = []
        line.reserveCapacity(256)
        if hasPriorities {
            line.append(UInt8(ascii: "<"))
            line.append(decimal: event.level.priority)
            line.append(UInt8(ascii: ">"))
        }
        begin(&line, event)
        // Room for `cut` and the end of the line.
        let room = Self.longestLine - 16
        for (key, value) in event.fields.pairs where value != .text("") {
            let length = line.count
            append(key, value, to: &line)
            if line.count > room {
                line.removeSubrange(length...)
                append(.cut, .flag(true), to: &line)
                break
            }
        }
        if format == .json { line.append(UInt8(ascii: "}")) }
        line.append(UInt8(ascii: "\n"))
        return line
    }

    private func begin(_ line: inout [UInt8], _ event: LogEvent) {
        let message = event.message.withUTF8Buffer { String(decoding: $0, as: UTF8.self) }
        switch format {
        case .logfmt:
            line.append(contentsOf: "ts=".utf8)
            event.time.append(to: &line)
            line.append(contentsOf: " level=".utf8)
            line.append(contentsOf: event.level.rawValue.utf8)
            line.append(contentsOf: " msg=".utf8)
            appendText(message, to: &line)
        case .json:
            line.append(contentsOf: #"{"ts":""#.utf8)
            event.time.append(to: &line)
            line.append(contentsOf: #"","level":""#.utf8)
            line.append(contentsOf: event.level.rawValue.utf8)
            line.append(contentsOf: #"","msg":"#.utf8)
            appendText(message, to: &line)
        }
    }

    private func append(_ key: LogKey, _ value: LogValue, to line: inout [UInt8]) {
        let quote = UInt8(ascii: "\"")
        line.append(UInt8(ascii: format == .json ? "," : " "))
        if format == .json { line.append(quote) }
        line.append(contentsOf: key.rawValue.utf8)
        if case .duration = value { line.append(contentsOf: "_ms".utf8) }
        if format == .json { line.append(quote) }
        line.append(UInt8(ascii: format == .json ? ":" : "="))
        switch value {
        case .int(let number): line.append(decimal: number)
        case .text(let text): appendText(text, to: &line)
        case .duration(let duration): appendMilliseconds(duration, to: &line)
        case .flag(let flag): line.append(contentsOf: (flag ? "true" : "false").utf8)
        }
    }

    /// 1.5 s becomes `1500.000`, 250 µs `0.250`. What is finer than a microsecond is cut off.
    private func appendMilliseconds(_ duration: Duration, to line: inout [UInt8]) {
        let (seconds, attoseconds) = duration.components
        let microseconds = Int(seconds) * 1_000_000 + Int(attoseconds / 1_000_000_000_000)
        if microseconds < 0 { line.append(UInt8(ascii: "-")) }
        let (milliseconds, rest) = microseconds.magnitude.quotientAndRemainder(dividingBy: 1000)
        line.append(decimal: Int(milliseconds))
        line.append(UInt8(ascii: "."))
        line.append(digits: Int(rest), count: 3)
    }

    private func appendText(_ text: String, to line: inout [UInt8]) {
        let isQuoted = format == .json || TextEscaping.needsQuotes(text)
        if isQuoted { line.append(UInt8(ascii: "\"")) }
        TextEscaping.append(text, limit: Self.longestText, to: &line)
        if isQuoted { line.append(UInt8(ascii: "\"")) }
    }
}
