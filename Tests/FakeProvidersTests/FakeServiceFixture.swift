import Credentials
import EventLoop
import FakeProviders
import Foundation
import Testing

/// A running stand-in with a key of its own, and a token that it accepts.
struct FakeServiceFixture {
    let service: FakeAPNS
    let port: UInt16
    let directory: String
    let key: String

    static let keyID = "ABC123DEFG"
    static let teamID = "DEF123GHIJ"
    static let deviceToken = "00fc13adff785122b4ad28809a3420982341241421348097878e577c991de8f0"
    /// One loop for all tests: a service costs no thread.
    private static let loop = EventLoop.startThread(name: "fake-providers")

    /// Starts a service with the defaults, lets `body` use it, stops it.
    static func run(_ body: (FakeServiceFixture) async throws -> Void) async throws {
        try await run(\.isSandbox, false, body)
    }

    /// Starts a service with `setting` set to `value`, lets `body` use it, stops it.
    static func run<Value>(
        _ setting: WritableKeyPath<FakeAPNSConfiguration, Value>, _ value: Value,
        _ body: (FakeServiceFixture) async throws -> Void
    ) async throws {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("postbell-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: directory) }
        let identity = try ServerIdentity.generated()
        try IdentityFiles.write(identity, to: directory.path)
        let keyFile = directory.path + "/apns.p8"
        try IdentityFiles.makeProviderKey(at: keyFile)
        var configuration = FakeAPNSConfiguration(identity: identity)
        configuration.keys = [try IdentityFiles.providerKey(at: keyFile, keyID: keyID, teamID: teamID)]
        configuration.topics = ["com.example.app"]
        configuration[keyPath: setting] = value
        let service = try FakeAPNS(configuration, on: loop)
        let port = try await service.start()
        let key = try String(contentsOfFile: keyFile, encoding: .utf8)
        let fixture = FakeServiceFixture(service: service, port: port, directory: directory.path, key: key)
        do {
            try await body(fixture)
        } catch {
            await service.stop()
            throw error
        }
        await service.stop()
    }

    /// A provider token that the service accepts, unless told otherwise.
    func authorization(
        keyID: String = keyID, teamID: String = teamID, age: Int64 = 60, key: String? = nil
    ) throws -> String {
        let signer = try SigningKey(pem: SecretBytes(copying: key ?? self.key))
        let issuedAt = Int64(Date().timeIntervalSince1970) - age
        let token = JSONWebToken.compact(keyID: keyID, teamID: teamID, issuedAt: issuedAt, signedBy: signer)
        return "bearer " + (try #require(token))
    }

    /// Headers of a push that nothing is wrong with.
    func headers() throws -> [String: String] {
        [
            "authorization": try authorization(), "apns-topic": "com.example.app", "apns-push-type": "alert",
            "apns-priority": "10", "apns-expiration": "0", "apns-id": "0189c4ce-7e2c-7bd5-9f8c-7f5a3a1b2c3d",
        ]
    }
}

/// curl as an HTTP/2 client that shares no code with the stand-in's callers.
struct Curl {
    struct Answer {
        let exitStatus: Int32
        let status: Int
        let headers: [String: String]
        let body: String
        let problem: String

        var reason: String? {
            let object = try? JSONSerialization.jsonObject(with: Data(body.utf8)) as? [String: Any]
            return object?["reason"] as? String
        }
    }

    static func post(
        _ fixture: FakeServiceFixture, token: String = FakeServiceFixture.deviceToken, path: String? = nil,
        method: String = "POST", headers: [String: String], body: String = "{\"aps\":{\"alert\":\"hello\"}}",
        extra: [String] = []
    ) throws -> Answer {
        try send(
            to: "https://localhost:\(fixture.port)" + (path ?? "/3/device/" + token), authority: fixture.directory,
            method: method, headers: headers, body: body, extra: extra)
    }

    /// Sends one request; `authority` is the directory with the server's `ca.pem`.
    static func send(
        to url: String, authority: String, method: String = "POST", headers: [String: String], body: String,
        extra: [String] = []
    ) throws -> Answer {
        var arguments = [
            "--silent", "--show-error", "--http2", "--max-time", "60", "--include", "--request", method,
            "--cacert", authority + "/ca.pem",
        ]
        for (name, value) in headers { arguments += ["--header", "\(name): \(value)"] }
        if method != "GET" {
            arguments += ["--data-binary", body]
            if headers["content-type"] == nil { arguments += ["--header", "content-type:"] }
        }
        arguments += extra + [url]
        let (exitStatus, output, problem) = try run("curl", arguments)
        let parts = output.components(separatedBy: "\r\n\r\n")
        let lines = parts.first?.components(separatedBy: "\r\n") ?? []
        var found: [String: String] = [:]
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { continue }
            found[String(line[..<colon])] = line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
        }
        let status = lines.first?.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        return Answer(
            exitStatus: exitStatus, status: status, headers: found, body: parts.dropFirst().joined(),
            problem: problem)
    }

    /// Runs a program found on the path to its end; its own options bound it.
    static func run(_ program: String, _ arguments: [String]) throws -> (Int32, output: String, problem: String) {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [program] + arguments
        let output = Pipe()
        let problem = Pipe()
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = problem
        try process.run()
        let printed = output.fileHandleForReading.readDataToEndOfFile()
        let complaint = problem.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return (
            process.terminationStatus, String(decoding: printed, as: UTF8.self),
            String(decoding: complaint, as: UTF8.self)
        )
    }
}
