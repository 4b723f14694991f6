import Foundation
import Support
import Testing

/// What a notification is on the wire, as text to be read and compared: one file for each form of a sample, below
/// `Golden`, with what both providers get.
///
/// `TEST_WRITE_GOLDEN=1` writes the files anew, and fails: they are to be read before they are committed.
struct GoldenPush {
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Golden")

    private let file: URL
    /// The file's name.
    var name: String { file.lastPathComponent }
    private let text: String

    /// A push of a sample; `form` is `loud` or `silent`.
    init(_ wire: Wire, of sample: CatalogSample, _ form: String, in catalog: ShippedCatalog) {
        file = Self.folder.appending(path: "\(catalog)/\(sample.name),\(form).txt")
        let headers = wire.apnsHeaders.map { "\($0.name): \($0.value)\n" }.joined()
        text = "APNs\n\(headers)\n\(wire.apns)\n\nFCM\n\n\(wire.fcm)\n"
    }

    /// Compares it with its file, or writes that.
    func check() throws {
        if ProcessInfo.processInfo.environment["TEST_WRITE_GOLDEN"] != nil {
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try text.write(to: file, atomically: true, encoding: .utf8)
            Issue.record("written, to be read: \(name)")
            return
        }
        let golden = (try? String(contentsOf: file, encoding: .utf8)) ?? ""
        guard text != golden else { return }
        Issue.record("\(name): another push than it says\n\(Self.difference(golden, text))")
    }

    /// Names of all files of a catalog.
    static func files(of catalog: ShippedCatalog) throws -> Set<String> {
        Set(try FileManager.default.contentsOfDirectory(atPath: folder.appending(path: catalog.rawValue).path))
    }

    /// Lines that differ, with `^` where they begin to.
    static func difference(_ old: String, _ new: String) -> String {
        let (before, after) = (old.split(separator: "\n"), new.split(separator: "\n"))
        var lines: [String] = []
        for index in 0..<max(before.count, after.count) {
            let left = index < before.count ? String(before[index]) : nil
            let right = index < after.count ? String(after[index]) : nil
            guard left != right else { continue }
            if let left { lines.append("- \(left)") }
            if let right { lines.append("+ \(right)") }
            let same = zip(left ?? "", right ?? "").prefix { $0 == $1 }.count
            lines.append(String(repeating: " ", count: same + 2) + "^")
        }
        return lines.joined(separator: "\n")
    }
}
