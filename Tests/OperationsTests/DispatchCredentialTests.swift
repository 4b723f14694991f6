import Foundation
import Testing

@testable import Operations

/// What the program says about a credential that it cannot use, before it reaches for anything else.
@Suite struct DispatchCredentialTests {
    /// Each makes the file `apns.p8`, as an operator could have made it by mistake.
    private static let mistakes: [(commands: String, complaint: String)] =
        [
            ("true", "does not exist"),
            ("mkdir apns.p8", "is not a regular file"),
            ("mkfifo apns.p8", "is not a regular file"),
            ("ln -s /dev/zero apns.p8", "is a symbolic link that leads out of its directory"),
            ("ln -s nowhere apns.p8", "is a symbolic link that leads out of its directory"),
            (": >apns.p8", "is empty"),
            ("\(goodKey) && chmod 644 apns.p8", "has mode 0644, so others can read or change it"),
            (
                "\(goodKey) && mv apns.p8 .. && ln -s ../apns.p8 apns.p8",
                "is a symbolic link that leads out of its directory"
            ),
            ("head -c 20000 /dev/zero >apns.p8", "has 20000 bytes, more than any key"),
            ("truncate -s 5G apns.p8", "has 5368709120 bytes, more than any key"),
            ("\(goodKey) && chmod 640 apns.p8", "has mode 0640, so others can read or change it"),
            ("\(goodKey) && chmod 602 apns.p8", "has mode 0602, so others can read or change it"),
            ("\(mountedKey) && chmod 444 ..1/apns.p8", "has mode 0444, so others can read or change it"),
            ("echo hush-hush >apns.p8", "holds no PEM block"),
            ("openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out apns.p8", "holds an RSA key"),
            (
                "openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-384 -out apns.p8",
                "holds a key on the curve"
            ),
            (
                "openssl ecparam -name prime256v1 -genkey -noout -out apns.p8",
                "holds `BEGIN EC PRIVATE KEY`, an older form"
            ),
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
        ] + whatOnlyRootCanMake
    private static let goodKey = "openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out apns.p8"
    /// As Kubernetes mounts a secret: the file is a link to a link to a directory of the same mount.
    private static let mountedKey =
        "mkdir ..1 && \(goodKey) && mv apns.p8 ..1 && ln -s ..1 ..data && ln -s ..data/apns.p8 apns.p8"
    /// Nobody else can give a file away. (The rule itself has a table of its own in KeyFileTests.)
    private static let whatOnlyRootCanMake: [(commands: String, complaint: String)] =
        geteuid() != 0
        ? []
        : [
            ("\(goodKey) && chown 12345 apns.p8", "is owned by user id 12345"),
            (
                "\(mountedKey) && chmod 440 ..1/apns.p8 && chgrp 12345 ..1/apns.p8",
                "has mode 0440, so others can read or change it"
            ),
        ]

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
        let examined = try Program.run(["check", "--offline"], environment: folder.environment(key: folder.key))
        #expect(examined.status == 3, "\(examined.errors)")
        let found = examined.output.split(separator: "\n").filter { $0.contains("  credential     ") }
        #expect(found.count == 1)
        #expect(
            found.first?.hasPrefix("fail  credential     the key file \(folder.key) \(complaint)") == true,
            "\(examined.output)")
        for text in [result.errors, result.output, examined.errors, examined.output] {
            #expect(!folder.isGivenAway(in: text), "\(text)")
        }
    }

    /// Ways to hand over a key with which only this process's user or group can read it.
    private static let arrangements: [(name: String, commands: String, isCredential: Bool)] = [
        ("for its owner alone", "\(goodKey) && chmod 400 apns.p8", false),
        ("by systemd, which shows mode 0440", "\(goodKey) && chmod 440 apns.p8", true),
        ("by Kubernetes", "\(mountedKey) && chmod 400 ..1/apns.p8", false),
        ("by Kubernetes to a group", "\(mountedKey) && chmod 440 ..1/apns.p8", false),
    ]

    @Test(arguments: arrangements)
    func aGoodKeyIsAccepted(name: String, commands: String, isCredential: Bool) throws {
        let folder = try Folder()
        try folder.prepare(commands)
        var environment = folder.environment(key: isCredential ? "apns.p8" : folder.key)
        if isCredential { environment["CREDENTIALS_DIRECTORY"] = folder.path }
        let examined = try Program.run(["check", "--offline"], environment: environment)
        #expect(examined.status == 0)
        #expect(
            examined.output.contains("ok    credential     P-256 key in \(folder.key) (mode 04"), "\(examined.output)")
        #expect(!folder.isGivenAway(in: examined.output))
        let worker = try RunningProgram(["dispatch"], environment: environment)
        #expect(worker.line(containing: "waiting for the database") != nil, "\(worker.lines)")
        worker.terminate()
        #expect(worker.end() == 0)
        #expect(!folder.isGivenAway(in: worker.lines.joined(separator: "\n")))
    }

    /// systemd's own permissions are for systemd's own directory.
    @Test func aKeyIsNotExcusedByACredentialsDirectoryElsewhere() throws {
        let folder = try Folder()
        try folder.prepare("\(Self.goodKey) && chmod 440 apns.p8 && mkdir credentials")
        var environment = folder.environment(key: folder.key)
        environment["CREDENTIALS_DIRECTORY"] = folder.path + "/credentials"
        #expect(try Program.run(["dispatch"], environment: environment).status == 3)
    }

    @Test func aKeyThatIsNamedAfterAnotherIdIsWorthALook() throws {
        let folder = try Folder()
        try folder.prepare("\(Self.goodKey) && mv apns.p8 AuthKey_ZYX987WVUT.p8")
        let environment = folder.environment(key: folder.path + "/AuthKey_ZYX987WVUT.p8")
        let examined = try Program.run(["check", "--offline"], environment: environment)
        #expect(examined.status == 0)
        #expect(examined.output.contains("warn  credential     P-256 key in "), "\(examined.output)")
    }

    @Test func eachCredentialThatCannotBeUsedIsALine() throws {
        let folder = try Folder()
        try folder.prepare("\(Self.goodKey); mkdir ios.p8")
        var environment = folder.environment(key: folder.key)
        environment["POSTBELL_APNS_CREDENTIALS"] = "ios,tv"
        for (name, file) in [("IOS", "ios.p8"), ("TV", "tv.p8")] {
            environment["APNS_\(name)_KEY_FILE"] = "\(folder.path)/\(file)"
            environment["APNS_\(name)_KEY_ID"] = name + String(repeating: "1", count: 10 - name.count)
            environment["APNS_\(name)_TEAM_ID"] = "TEAM123456"
            environment["APNS_\(name)_TOPIC"] = "com.example.\(name)"
        }
        let result = try Program.run(["dispatch"], environment: environment)
        #expect(result.status == 3)
        let lines = result.lines.filter { !$0.hasPrefix("ts=") }
        #expect(lines.count == 2, "\(result.errors)")
        #expect(lines.first?.contains("ios.p8 is not a regular file; APNS_IOS_KEY_FILE; ") == true)
        #expect(lines.last?.contains("tv.p8 does not exist; APNS_TV_KEY_FILE; ") == true)
        let examined = try Program.run(["check", "--offline"], environment: environment)
        #expect(examined.status == 3)
        let found = examined.output.split(separator: "\n").filter { $0.contains("  credential     ") }
        #expect(found.map { $0.prefix(4) } == ["ok  ", "ok  ", "fail", "fail"], "\(examined.output)")
    }

    @Test func aTopicWithASuffixIsWorthALook() throws {
        let folder = try Folder()
        try folder.prepare(Self.goodKey)
        var environment = folder.environment(key: folder.key)
        environment["APNS_TOPIC"] = "com.example.app,com.example.app.voip"
        let examined = try Program.run(["check", "--offline"], environment: environment)
        #expect(examined.status == 0)
        #expect(
            examined.output.contains(
                "warn  credential     the topic com.example.app.voip ends in .voip, which a push type adds by itself"),
            "\(examined.output)")
    }

    @Test(arguments: [
        ("true", "No such file or directory"), ("mkdir ca.pem", "is not a regular file"),
        ("mkfifo ca.pem", "is not a regular file"), (": >ca.pem", "no certificate or crl found"),
        ("echo hush-hush >ca.pem", "no certificate or crl found"),
        ("\(goodKey) && mv apns.p8 ca.pem", "no certificate or crl found"),
    ])
    func aFileOfCAsThatCannotBeUsedIsOneLine(commands: String, reason: String) throws {
        let folder = try Folder()
        try folder.prepare("\(commands); \(Self.goodKey)")
        var environment = folder.environment(key: folder.key)
        environment["POSTBELL_CA_FILE"] = folder.path + "/ca.pem"
        let result = try Program.run(["dispatch"], environment: environment)
        #expect(result.status == 3)
        let lines = result.lines.filter { !$0.hasPrefix("ts=") }
        #expect(lines.count == 1, "\(result.errors)")
        #expect(
            lines.first?.hasPrefix("postbell: the CA certificates cannot be loaded: \(folder.path)/ca.pem: \(reason)")
                == true,
            "\(result.errors)")
        #expect(lines.first?.contains("; POSTBELL_CA_FILE; ") == true)
        #expect(!folder.isGivenAway(in: result.errors))
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

    /// Whether `text` has a piece of any file there, which could be a key, or what was written into one.
    func isGivenAway(in text: String) -> Bool {
        let files = FileManager.default.enumerator(atPath: outer.path)?.compactMap { $0 as? String } ?? []
        let lines = files.flatMap { file -> [Substring] in
            let path = outer.path + "/" + file
            let facts = try? FileManager.default.attributesOfItem(atPath: path)
            let isRegular = facts?[.type] as? FileAttributeType == .typeRegular
            guard isRegular, (facts?[.size] as? Int ?? 0) < 4096 else { return [] }
            return ((try? String(contentsOfFile: path, encoding: .utf8)) ?? "").split(separator: "\n")
        }
        return lines.contains { !$0.hasPrefix("-----") && $0.count >= 8 && text.contains($0.prefix(16)) }
    }

    /// Settings of a worker with the key at `key`, whose database cannot be reached.
    func environment(key: String) -> [String: String] {
        [
            "APNS_KEY_FILE": key, "APNS_KEY_ID": "ABC123DEFG", "APNS_TEAM_ID": "DEF123GHIJ",
            "APNS_TOPIC": "com.example.app", "DATABASE_URL": "postgresql://u@127.0.0.1:1/d",
        ]
    }
}
