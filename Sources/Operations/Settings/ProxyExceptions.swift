/// Hosts that are reached without a proxy, in the form of `no_proxy` that most programs share: names with commas
/// between them; each stands for itself and what ends with a dot and it; `*` stands for all.
package struct ProxyExceptions: Sendable, Equatable {
    private let names: [String]

    /// Understands a list. Anything may stand in it, because other programs read it too.
    init(_ text: String) {
        names = text.split(separator: ",").map { item in
            let name = String(item).trimmed.lowercased()
            return name.hasPrefix(".") ? String(name.dropFirst()) : name
        }.filter { !$0.isEmpty }
    }

    /// Whether `host` is one of them.
    package func contain(_ host: String) -> Bool {
        let host = host.lowercased()
        return names.contains { name in
            name == "*" || host == name || "[\(host)]" == name || host.hasSuffix("." + name)
        }
    }
}
