import Foundation
import Testing

@testable import Operations

/// What `postbell dispatch` says about a credential that it cannot use, before it reaches for anything else.
@Suite struct DispatchCredentialTests {
    /// Each makes the file `apns.p8`, as an operator could have made it by mistake.
    private static let mistakes: [(commands: String, complaint: String)] = [
        ("true", "does not exist"),
        ("mkdir apns.p8", "is not a regular file"),
        (": >apns.p8", "is empty"),
        ("\(goodKey) && chmod 644 apns.p8", "has mode 0644, so others can read or change it"),
        (
            "\(goodKey) && mv apns.p8 .. && ln -s ../apns.p8 apns.p8",
            "is a symbolic link that leads out of its directory"
        ),
        ("head -c 20000 /dev/zero >apns.p8", "has 20000 bytes, more than any key"),
        ("echo hush-hush >apns.p8", "holds no PEM block"),
        ("openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out apns.p8", "holds an RSA key"),
        (
            "openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-384 -out apns.p8",
            "holds a key on the curve"
        ),
        ("openssl ecparam -name prime256v1 -genkey -noout -out apns.p8", "holds `BEGIN EC PRIVATE KEY`, an older form"),
        ("\(goodKey) && openssl pkey -in apns.p8 -pubout -out p && mv p apns.p8", "holds a public key"),
        (
            "\(goodKey) && openssl pkcs8 -topk8 -in apns.p8 -passout pass:x -out e && mv e apns.p8",
            "holds an encrypted key"
        ),
        (
            "\(goodKey) && openssl req -x509 -new -key apns.p8 -subj /CN=x -days 2 -out c && mv c apns.p8",
            "holds a certificate"
        ),
        ("\(goodKey) && sed 3d -i apns.p8", "holds a private key that is damaged or cut off"),
    ]
    private static let goodKey = "openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out apns.p8"

    @Test(arguments: mistakes)
    func aKeyFileThatCannotBeUsedIsOneLine(commands: String, complaint: String) throws {
        let folder = try Folder()
        try folder.prepare(commands)
        let result = try Program.run(["dispatch"], environment: folder.environment(key: folder.key))
        #expect(result.status == 3, "\(result.errors)")
        let lines = result.lines.filter { !$0.hasPrefix("ts=") }
        #expect(lines.count == 1)
        let parts = (lines.first ?? "").split(separator: "; ")
        #expect(parts.count == 3)
        #expect(parts.first?.hasPrefix("postbell: the key file \(folder.key) \(complaint)") == true, "\(result.errors)")
        #expect(parts.dropFirst().first == "APNS_KEY_FILE")
        #expect(!result.errors.contains("hush-hush"))
        #expect(!result.errors.contains("MIG"), "a byte of a key")
    }

    @Test(arguments: [false, true])
    func aGoodKeyIsAccepted(isHandedOverBySystemd: Bool) throws {
        let folder = try Folder()
        // systemd shows its credentials with mode 0440.
        try folder.prepare("\(Self.goodKey) && chmod \(isHandedOverBySystemd ? 440 : 400) apns.p8")
        var environment = folder.environment(key: isHandedOverBySystemd ? "apns.p8" : folder.key)
        if isHandedOverBySystemd { environment["CREDENTIALS_DIRECTORY"] = folder.path }
        let worker = try RunningProgram(["dispatch"], environment: environment)
        #expect(worker.line(containing: "waiting for the database") != nil, "\(worker.lines)")
        worker.terminate()
        #expect(worker.end() == 0)
    }

    @Test func aFileOfCAsThatDoesNotExistIsOneLine() throws {
        let folder = try Folder()
        try folder.prepare(Self.goodKey)
        var environment = folder.environment(key: folder.key)
        environment["POSTBELL_CA_FILE"] = "/nowhere/ca.pem"
        let result = try Program.run(["dispatch"], environment: environment)
        #expect(result.status == 3)
        #expect(result.lines.last?.contains("POSTBELL_CA_FILE") == true, "\(result.errors)")
    }
}

/// A directory of its own, inside another, with the key file `apns.p8` in it.
private final class Folder {
    let path: String
    private let outer: URL

    var key: String { path + "/apns.p8" }

    init() throws {
        outer = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString).resolvingSymlinksInPath()
        let inner = outer.appending(path: "keys")
        try FileManager.default.createDirectory(at: inner, withIntermediateDirectories: true)
        path = inner.path
    }

    deinit {
        try? FileManager.default.removeItem(at: outer)
    }

    /// Runs shell commands there; what they make is for its owner alone.
    func prepare(_ commands: String) throws {
        let shell = Process()
        shell.executableURL = URL(filePath: "/bin/sh")
        shell.arguments = ["-ec", "umask 077; cd \"$0\"; \(commands)", path]
        shell.standardError = FileHandle.nullDevice
        shell.standardOutput = FileHandle.nullDevice
        try shell.run()
        shell.waitUntilExit()
        try #require(shell.terminationStatus == 0, "could not prepare the key file (is openssl installed?)")
    }

    /// Settings of a worker with the key at `key`, whose database cannot be reached.
    func environment(key: String) -> [String: String] {
        [
            "APNS_KEY_FILE": key, "APNS_KEY_ID": "ABC123DEFG", "APNS_TEAM_ID": "DEF123GHIJ",
            "APNS_TOPIC": "com.example.app", "DATABASE_URL": "postgresql://u@127.0.0.1:1/d",
        ]
    }
}
