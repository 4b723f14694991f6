import Foundation
import Testing

/// `docs/http2.md` names tests; they are there.
@Suite struct DocumentTests {
    @Test func eachTestThatTheDocumentNamesIsThere() throws {
        let tests = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        let document = try String(contentsOf: tests.appending(path: "../docs/http2.md"), encoding: .utf8)
        var source = ""
        for file in try FileManager.default.subpathsOfDirectory(atPath: tests.path) where file.hasSuffix(".swift") {
            source += try String(contentsOf: tests.appending(path: file), encoding: .utf8)
        }
        // The last column of a table's row, and the prose, hold names of tests; words with a space or _ are others.
        let names = document.matches(of: /`([a-z][A-Za-z0-9]{15,})`/).map { String($0.output.1) }
        #expect(names.count > 60, "the document has lost its tables")
        for name in names {
            #expect(source.contains("func \(name)("), "\(name) is no test")
        }
    }
}
