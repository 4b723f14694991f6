import Synchronization

/// The process's log: one line per event, to standard error unless told otherwise.
///
/// Callable from any thread. A line costs its caller microseconds; when nobody reads, lines are dropped, counted, and
/// the count is said as soon as a line gets through.
package final class LogWriter: Sendable {
    /// Events below this level are not written.
    package let level: LogLevel
    private let encoder: LineEncoder
    private let clock: @Sendable () -> WallTime
    private let output: Mutex<LineOutput>

    /// A log of `format` that leaves out what is below `level`. `hasPriorities` puts journald's `<N>` before each line
    /// (see `JournalStream`); `descriptor` stays open for as long as the log lives.
    package init(
        level: LogLevel,
        format: LogFormat,
        hasPriorities: Bool = false,
        descriptor: Int32 = 2,
        clock: @escaping @Sendable () -> WallTime = { .now() }
    ) {
        self.level = level
        encoder = LineEncoder(format: format, hasPriorities: hasPriorities)
        self.clock = clock
        output = Mutex(LineOutput(descriptor: descriptor))
    }

    /// Writes one event. `fields` are made only if the level is written at all.
    package func write(_ level: LogLevel, _ message: StaticString, _ fields: @autoclosure () -> LogFields = [:]) {
        guard level >= self.level else { return }
        let line = encoder.encode(LogEvent(level, message, fields(), at: clock()))
        output.withLock { output in
            output.write(line) { dropped in
                encoder.encode(LogEvent(.warning, "log lines dropped", [.dropped: .int(dropped)], at: clock()))
            }
        }
    }

    /// One line per row or exchange.
    package func debug(_ message: StaticString, _ fields: @autoclosure () -> LogFields = [:]) {
        write(.debug, message, fields())
    }

    /// One line per batch or decision.
    package func info(_ message: StaticString, _ fields: @autoclosure () -> LogFields = [:]) {
        write(.info, message, fields())
    }

    /// A change of state.
    package func notice(_ message: StaticString, _ fields: @autoclosure () -> LogFields = [:]) {
        write(.notice, message, fields())
    }

    /// Something is wrong outside, and the worker copes.
    package func warning(_ message: StaticString, _ fields: @autoclosure () -> LogFields = [:]) {
        write(.warning, message, fields())
    }

    /// Something needs a person.
    package func error(_ message: StaticString, _ fields: @autoclosure () -> LogFields = [:]) {
        write(.error, message, fields())
    }
}
