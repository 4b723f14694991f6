import Credentials
import Foundation
import Testing

/// A directory of its own for one test, removed with it.
final class TemporaryDirectory {
    let path: String

    init() throws {
        let made = FileManager.default.temporaryDirectory.appendingPathComponent("postbell-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: made, withIntermediateDirectories: false)
        path = made.path
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    func file(_ name: String, _ content: String, mode: Int = 0o600) throws -> String {
        let file = path + "/" + name
        try FileManager.default.createDirectory(
            atPath: (file as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
        try Data(content.utf8).write(to: URL(fileURLWithPath: file))
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file)
        return file
    }

    func link(_ name: String, to target: String) throws -> String {
        let link = path + "/" + name
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: target)
        return link
    }
}

@Suite struct KeyFileTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func problem(_ path: String, credentials: String? = nil) -> KeyFileError.Problem? {
        do throws(KeyFileError) {
            _ = try KeyFile(path: path, credentialsDirectory: credentials).read()
            return nil
        } catch {
            return error.problem
        }
    }

    @Test(arguments: [0o600, 0o400]) func `reads a file for its owner alone`(mode: Int) throws {
        let path = try directory.file("key.p8", "key", mode: mode)
        let bytes = try KeyFile(path: path, credentialsDirectory: nil).read()
        #expect(bytes.withUnsafeBytes { Array($0) } == Array("key".utf8))
    }

    @Test(arguments: [0o640, 0o604, 0o660, 0o644, 0o620, 0o602])
    func `refuses a file that others can read or write`(mode: Int) throws {
        let path = try directory.file("key.p8", "key", mode: mode)
        #expect(problem(path) == .exposed(mode: UInt32(mode)))
    }

    @Test func `refuses what is missing, empty, too large or no file`() throws {
        #expect(problem(directory.path + "/none") == .missing)
        #expect(problem(try directory.file("key", "") + "/below") == .missing)
        #expect(problem(try directory.file("empty", "")) == .empty)
        let large = String(repeating: "x", count: KeyFile.sizeLimit + 1)
        #expect(problem(try directory.file("large", large)) == .tooLarge(bytes: large.utf8.count))
        #expect(problem(directory.path) == .notRegular)
        #expect(problem("/dev/null") == .notRegular)
        let pipe = directory.path + "/pipe"
        #expect(mkfifo(pipe, 0o600) == 0)
        #expect(problem(pipe) == .notRegular)
    }

    @Test func `takes any mode below the credentials directory`() throws {
        let path = try directory.file("credentials/key.p8", "key", mode: 0o440)
        #expect(problem(path) == .exposed(mode: 0o440))
        #expect(problem(path, credentials: directory.path + "/credentials") == nil)
        #expect(problem(path, credentials: directory.path + "/cred") == .exposed(mode: 0o440))
        #expect(problem(path, credentials: "") == .exposed(mode: 0o440))
    }

    @Test func `follows links within a mounted directory and no others`() throws {
        _ = try directory.file("mount/..2024/key.p8", "key", mode: 0o440)
        _ = try directory.link("mount/..data", to: "..2024")
        let mounted = try directory.link("mount/key.p8", to: "..data/key.p8")
        #expect(problem(mounted) == nil)
        _ = try directory.file("mount/..2024/open.p8", "key", mode: 0o444)
        #expect(problem(try directory.link("mount/open.p8", to: "..data/open.p8")) == .exposed(mode: 0o444))
        _ = try directory.file("elsewhere.p8", "key")
        #expect(problem(try directory.link("mount/outside.p8", to: "../elsewhere.p8")) == .linkLeadsElsewhere)
        #expect(problem(try directory.link("mount/dangling.p8", to: "..data/none")) == .linkLeadsElsewhere)
    }

    @Test func `errors name the file, what is wrong and what to do, never the content`() throws {
        let path = try directory.file("key.p8", "secret content", mode: 0o644)
        let error = KeyFileError(path: path, problem: try #require(problem(path)))
        #expect(error.description.contains(path))
        #expect(error.description.contains("mode 0644"))
        #expect(error.description.contains("chmod 600"))
        #expect(!error.description.contains("secret content"))
    }
}

@Suite struct FileFactsTests {
    private static let regular: UInt32 = 0o100000

    @Test func `the owner must be the running user or root`() {
        let foreign = FileFacts(mode: Self.regular | 0o600, owner: 4242, group: 0, size: 10)
        #expect(foreign.problem(at: .plain, user: 1000, groups: []) == .foreignOwner(uid: 4242))
        #expect(foreign.problem(at: .plain, user: 4242, groups: []) == nil)
        #expect(foreign.problem(at: .credentialsDirectory, user: 1000, groups: []) == nil)
        let root = FileFacts(mode: Self.regular | 0o400, owner: 0, group: 0, size: 10)
        #expect(root.problem(at: .plain, user: 1000, groups: []) == nil)
    }

    @Test func `a group may read a linked mount only if it is one of the process`() {
        let facts = FileFacts(mode: Self.regular | 0o440, owner: 0, group: 2000, size: 10)
        #expect(facts.problem(at: .linkedMount, user: 1000, groups: [2000]) == nil)
        #expect(facts.problem(at: .linkedMount, user: 1000, groups: [1000]) == .exposed(mode: 0o440))
        #expect(facts.problem(at: .plain, user: 1000, groups: [2000]) == .exposed(mode: 0o440))
    }
}
