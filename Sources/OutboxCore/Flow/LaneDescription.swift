/// A lane as the worker is configured: one credential of one provider in one environment.
package struct LaneDescription: Equatable, Sendable {
    /// `provider/environment/credential`, for logs and the registry.
    package let name: String
    /// How long it pauses when its configuration is wrong.
    package let pause: Duration

    /// A lane of a configuration.
    package init(name: String, pause: Duration) {
        self.name = name
        self.pause = pause
    }
}
