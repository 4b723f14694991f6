import Foundation

/// A catalog that comes with Postbell, as the file in `sql/catalogs`, and the example schema that goes with it.
package enum ShippedCatalog: String, CaseIterable, Sendable, CustomStringConvertible {
    case agentPlatform = "agent-platform"
    case teamChat = "team-chat"
    case pluginHub = "plugin-hub"

    package var description: String { rawValue }

    /// Statements that declare its kinds, as one transaction.
    package func catalog() throws -> String { try transaction("catalogs") }

    /// Statements that make the example's tables, functions and hooks, as one transaction.
    package func example() throws -> String { try transaction("examples") }

    private func transaction(_ folder: String) throws -> String {
        let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..").standardized
        let file = root.appending(path: "sql/\(folder)/\(rawValue).sql")
        return "BEGIN;\n" + (try String(contentsOf: file, encoding: .utf8)) + "COMMIT;\n"
    }
}
