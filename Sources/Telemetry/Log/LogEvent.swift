/// One thing that happened, ready to become a line.
package struct LogEvent: Sendable {
    /// How much it matters.
    package let level: LogLevel
    /// What happened. Constant, so that equal events have equal messages; what differs goes into the fields.
    package let message: StaticString
    /// The particulars.
    package let fields: LogFields
    /// When.
    package let time: WallTime

    /// An event at `time`.
    package init(_ level: LogLevel, _ message: StaticString, _ fields: LogFields = [:], at time: WallTime) {
        self.level = level
        self.message = message
        self.fields = fields
        self.time = time
    }
}
