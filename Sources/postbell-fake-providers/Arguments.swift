import FakeProviders

/// The command line, read.
struct Arguments {
    /// A numeric address and a port; port 0 lets the system choose.
    struct Address {
        var host = "127.0.0.1"
        var port: UInt16 = 0
    }

    var apns = Address()
    var fcm: Address?
    var tokenEndpoint: Address?
    var certificates = ""
    var makesKey = false
    var keyFile: String?
    var keyID = "ABC123DEFG"
    var teamID = "DEF123GHIJ"
    var topics: Set<String> = []
    var makesAccount = false
    var accountFiles: [String] = []
    var project = "demo-project"
    var isStrict = false
    var scenario: String?
    var speed = 1
    var log = RequestLogTarget.standardOutput
    var portFile: String?
    var streams: UInt32 = 1000
    var streamsBeforeToken: UInt32 = 1
    var isSandbox = false
    var throttles = false
    var slowness = Duration.milliseconds(500)
    var tokenUpdateInterval = Duration.seconds(20 * 60)
    var exitAfter: Duration?

    /// What is wrong with the command line, for a person to read.
    struct Fault: Error, CustomStringConvertible {
        let description: String

        init(_ description: String) {
            self.description = description
        }
    }

    /// Nil when help was asked for.
    init?(_ words: [String]) throws(Fault) {
        var words = words[...]
        while let option = words.popFirst() {
            switch option {
            case "--help", "-h": return nil
            case "--make-key": makesKey = true
            case "--make-account": makesAccount = true
            case "--no-log": log = .none
            case "--sandbox": isSandbox = true
            case "--strict": isStrict = true
            case "--throttle": throttles = true
            default:
                guard Self.takesValue(option) else { throw Fault("unknown option \(option)") }
                guard let value = words.popFirst() else { throw Fault("\(option) needs a value") }
                try set(option, value)
            }
        }
        try check()
    }

    private func check() throws(Fault) {
        if certificates.isEmpty { throw Fault("--certificates DIR is needed: clients must trust the server") }
        if makesKey && keyFile != nil { throw Fault("--make-key and --apns-key exclude each other") }
        let hasAccount = makesAccount || !accountFiles.isEmpty
        if tokenEndpoint != nil && !hasAccount {
            throw Fault("--token-endpoint needs an account: --make-account or --service-account FILE")
        }
        if hasAccount && tokenEndpoint == nil {
            throw Fault("an account is of use to a token endpoint only: add --token-endpoint HOST:PORT")
        }
    }

    private static func takesValue(_ option: String) -> Bool {
        help.contains("\n  \(option) ") && option.hasPrefix("--")
    }

    private mutating func set(_ option: String, _ value: String) throws(Fault) {
        switch option {
        case "--listen": apns = try Self.address(option, value)
        case "--fcm": fcm = try Self.address(option, value)
        case "--token-endpoint": tokenEndpoint = try Self.address(option, value)
        case "--certificates": certificates = value
        case "--apns-key": keyFile = value
        case "--key-id": keyID = value
        case "--team-id": teamID = value
        case "--topic": topics.insert(value)
        case "--service-account": accountFiles.append(value)
        case "--project": project = value
        case "--scenario": scenario = value
        case "--speed": speed = Int(try Self.count(option, value))
        case "--log": log = value == "-" ? .standardOutput : .file(value)
        case "--port-file": portFile = value
        case "--streams": streams = try Self.count(option, value)
        case "--streams-before-token": streamsBeforeToken = try Self.count(option, value)
        case "--slowness": slowness = try Self.duration(option, value)
        case "--token-updates": tokenUpdateInterval = try Self.duration(option, value)
        case "--exit-after": exitAfter = try Self.duration(option, value)
        default: throw Fault("unknown option \(option)")
        }
    }

    private static func address(_ option: String, _ value: String) throws(Fault) -> Address {
        guard let colon = value.lastIndex(of: ":"), let port = UInt16(value[value.index(after: colon)...]) else {
            throw Fault("\(option): \(value) is not HOST:PORT")
        }
        return Address(host: String(value[..<colon]).filter { $0 != "[" && $0 != "]" }, port: port)
    }

    private static func count(_ option: String, _ value: String) throws(Fault) -> UInt32 {
        guard let number = UInt32(value), number > 0 else { throw Fault("\(option): \(value) is no count") }
        return number
    }

    private static func duration(_ option: String, _ text: String) throws(Fault) -> Duration {
        guard let duration = DurationText.parse(text) else {
            throw Fault("\(option): \(text) is no duration (\(DurationText.forms))")
        }
        return duration
    }
}
