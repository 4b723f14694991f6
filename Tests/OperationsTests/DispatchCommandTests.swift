import Foundation
import Support
import Testing

@testable import Operations

/// `postbell dispatch` from outside: how it starts, what it waits for, and how it ends.
@Suite(.serialized) struct DispatchCommandTests {
    @Test func aDatabaseOutOfReachIsWaitedForAndASignalEndsTheWait() throws {
        let worker = try RunningProgram(
            ["dispatch"], environment: ["DATABASE_URL": "postgresql://u:hush-hush@127.0.0.1:1/d"])
        #expect(worker.line(containing: #"msg="waiting for the database""#)?.contains("level=warning") == true)
        worker.terminate()
        #expect(worker.end() == 0)
        #expect(!worker.lines.joined().contains("hush-hush"))
    }

    @Test func withoutItsSchemaAWorkerEnds() async throws {
        try await TemporaryDatabase.empty(on: .postgres15) { database in
            let result = try database.run("dispatch")
            #expect(result.status == 5)
            let last = try #require(result.lines.last)
            #expect(last.hasPrefix("postbell: the database has no schema of Postbell; database "))
            #expect(last.hasSuffix("; run `postbell migrate`"))
            #expect(result.lines.dropLast().allSatisfy { $0.hasPrefix("ts=") })
        }
    }

    @Test func aSchemaOfANewerProgramIsLeftAlone() async throws {
        try await TemporaryDatabase.migrated(on: .postgres15) { database in
            try await database.execute(
                "INSERT INTO postbell.schema_migrations (version, name, checksum) VALUES (9999, 'later', 'x')")
            // Where libpq's own variables lead.
            var environment = ["PGDATABASE": database.name]
            for part in try database.server.connectionString().split(separator: " ") {
                let pair = part.split(separator: "=").map(String.init)
                if ["host", "port", "user"].contains(pair[0]) { environment["PG" + pair[0].uppercased()] = pair[1] }
            }
            let result = try Program.run(["dispatch"], environment: environment)
            #expect(result.status == 5)
            let last = try #require(result.lines.last)
            #expect(last.hasPrefix("postbell: the schema is at revision 9999, this program knows only "))
            #expect(last.contains("; database PGHOST="))
            #expect(last.contains("PGDATABASE=\(database.name)"))
            #expect(last.hasSuffix("; install a newer version of this program"))
        }
    }

    @Test func withoutAProviderAWorkerStaysUpAndSaysSoOnce() async throws {
        try await TemporaryDatabase.migrated(on: .postgres15) { database in
            let manager = try DatagramSocket()
            let worker = try RunningProgram(
                ["dispatch"],
                environment: [
                    "DATABASE_URL": try database.connectionString, "NOTIFY_SOCKET": manager.path,
                    "POSTBELL_LOG_FORMAT": "json",
                ])
            #expect(manager.receive() == "READY=1")
            worker.terminate()
            #expect(worker.end() == 0)
            #expect(manager.rest().contains("STOPPING=1"))
            let said = worker.lines.filter { $0.contains("no provider is configured: nothing is claimed") }
            #expect(said.count == 1)
            for line in worker.lines {
                #expect(try JSONSerialization.jsonObject(with: Data(line.utf8)) is [String: Any])
            }
        }
    }

    @Test func aMissingStandardErrorIsNotGivenToASocket() async throws {
        try await TemporaryDatabase.migrated(on: .postgres15) { database in
            let manager = try DatagramSocket()
            let worker = try RunningProgram(
                ["-c", "exec \"$0\" dispatch 2>&- >&- <&-", Program.executable.path],
                environment: ["DATABASE_URL": try database.connectionString, "NOTIFY_SOCKET": manager.path],
                by: URL(filePath: "/bin/sh"))
            #expect(manager.receive() == "READY=1")
            for descriptor in 0...2 { #expect(try worker.target(ofDescriptor: descriptor) == "/dev/null") }
            worker.terminate()
            #expect(worker.end() == 0)
        }
    }

    @Test func aReplacementForApplesHostsIsSaidLoudly() throws {
        let worker = try RunningProgram(
            ["dispatch"],
            environment: [
                "DATABASE_URL": "postgresql://u@127.0.0.1:1/d", "POSTBELL_APNS_ENDPOINT": "https://push.example:8443",
            ])
        let line = try #require(worker.line(containing: "pushes go to a replacement for Apple's hosts"))
        #expect(line.contains("level=warning"))
        #expect(line.contains("host=push.example port=8443"))
        // Signals are handled from here on.
        #expect(worker.line(containing: "waiting for the database") != nil)
        worker.terminate()
        #expect(worker.end() == 0)
    }
}

/// The service manager's end of `NOTIFY_SOCKET`.
private final class DatagramSocket {
    let path: String
    private let descriptor: Int32
    private let directory: URL

    init() throws {
        directory = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        path = directory.appending(path: "notify").path
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let name = Array(path.utf8)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
        let bound = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, socklen_t(3 + name.count)) }
        }
        try #require(bound == 0)
    }

    deinit {
        close(descriptor)
        try? FileManager.default.removeItem(at: directory)
    }

    /// The next message; waits half a minute for it at most.
    func receive() -> String? {
        var poll = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        guard Foundation.poll(&poll, 1, 30_000) > 0 else { return nil }
        return message()
    }

    /// The messages that have arrived.
    func rest() -> [String] {
        var messages: [String] = []
        while let message = message() { messages.append(message) }
        return messages
    }

    private func message() -> String? {
        var bytes = [UInt8](repeating: 0, count: 1024)
        let count = recv(descriptor, &bytes, bytes.count, Int32(MSG_DONTWAIT))
        return count < 0 ? nil : String(decoding: bytes[..<count], as: UTF8.self)
    }
}
