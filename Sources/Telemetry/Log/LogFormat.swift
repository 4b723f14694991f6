/// How a line is written.
package enum LogFormat: String, CaseIterable, Sendable {
    /// `name=value` pairs, for people and for most collectors.
    case logfmt
    /// One JSON object per line.
    case json
}
