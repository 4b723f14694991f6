/// Words for the values of a payload key, with one for all other values.
package struct LabelMap: Equatable, Sendable {
    private var labels: [ArraySlice<UInt8>: [UInt8]] = [:]
    private let fallback: [UInt8]

    /// Labels by value; `fallback` stands for every other value, and for an absent key.
    package init(_ labels: [String: String], fallback: String) {
        func content(_ label: String) -> [UInt8] {
            var bytes: [UInt8] = []
            JSONText.appendEscaped(label, to: &bytes)
            return bytes
        }
        self.fallback = content(fallback)
        for (value, label) in labels { self.labels[Array(value.utf8)[...]] = content(label) }
    }

    /// The label of a value, as JSON string content; nil is an absent key.
    func label(of value: ArraySlice<UInt8>?) -> [UInt8] {
        value.flatMap { labels[$0] } ?? fallback
    }
}
