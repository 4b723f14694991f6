/// A fault put on purpose into what drives the simulated worker, where the product has code of the same duty.
package enum DriverDefect: String, CaseIterable, Sendable {
    /// Recovery does not wait until those who hold leases are back, nor for the clock to be steady.
    case recoversAtOnce
    /// A flush that failed is taken for written.
    case forgetsFailedFlush
    /// Whatever the re-check says is let through.
    case ignoresRecheck
    /// A deadline is not looked at before the send.
    case ignoresDeadline
    /// A request without an answer is settled as accepted.
    case believesInSilence
    /// A request without an answer is settled as not sent.
    case deniesUnanswered
    /// A call of hooks that failed is taken for one that let everything through.
    case believesFailedHooks
}
