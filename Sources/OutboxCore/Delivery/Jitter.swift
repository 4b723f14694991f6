/// Jitter that only adds: a wait is never shorter than what a policy or a provider asked for.
package enum Jitter {
    /// `duration` lengthened by 0 to 20 %; `fraction` is drawn from 0..<1.
    package static func lengthen(_ duration: Duration, by fraction: Double) -> Duration {
        duration + duration * (0.2 * fraction)
    }
}
