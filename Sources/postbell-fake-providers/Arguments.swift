import FakeProviders

/// The command line, read.
struct Arguments {
    var host = "127.0.0.1"
    var port: UInt16 = 0
    var certificates: String?
    var makesKey = false
    var keyFile: String?
    var keyID = "ABC123DEFG"
    var teamID = "DEF123GHIJ"
    var topics: Set<String> = []
    var log = RequestLogTarget.standardOutput
    var portFile: String?
    var streams: UInt32 = 1000
    var streamsBeforeToken: UInt32 = 1
    var isSandbox = false
    var throttles = false
    var slowness = Duration.milliseconds(500)
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
            case "--no-log": log = .none
            case "--sandbox": isSandbox = true
            case "--throttle": throttles = true
            default:
                guard let value = words.popFirst() else { throw Fault("\(option) needs a value") }
                try set(option, value)
            }
        }
        if certificates == nil { throw Fault("--certificates DIR is needed: clients must trust the server") }
        if makesKey && keyFile != nil { throw Fault("--make-key and --apns-key exclude each other") }
    }

    private mutating func set(_ option: String, _ value: String) throws(Fault) {
        switch option {
        case "--listen": try setAddress(value)
        case "--certificates": certificates = value
        case "--apns-key": keyFile = value
        case "--key-id": keyID = value
        case "--team-id": teamID = value
        case "--topic": topics.insert(value)
        case "--log": log = value == "-" ? .standardOutput : .file(value)
        case "--port-file": portFile = value
        case "--streams": streams = try Self.count(option, value)
        case "--streams-before-token": streamsBeforeToken = try Self.count(option, value)
        case "--slowness": slowness = try Self.duration(value)
        case "--exit-after": exitAfter = try Self.duration(value)
        default: throw Fault("unknown option \(option)")
        }
    }

    private mutating func setAddress(_ value: String) throws(Fault) {
        guard let colon = value.lastIndex(of: ":"), let port = UInt16(value[value.index(after: colon)...]) else {
            throw Fault("--listen: \(value) is not HOST:PORT")
        }
        self.port = port
        host = String(value[..<colon]).filter { $0 != "[" && $0 != "]" }
    }

    private static func count(_ option: String, _ value: String) throws(Fault) -> UInt32 {
        guard let number = UInt32(value), number > 0 else { throw Fault("\(option): \(value) is no count") }
        return number
    }

    /// A number with its unit: `500ms`, `30s`, `5m`, `1h`.
    private static func duration(_ text: String) throws(Fault) -> Duration {
        let digits = text.prefix { $0.isNumber }
        guard let number = Int64(digits) else { throw Fault("\(text) is no duration (500ms, 30s, 5m, 1h)") }
        switch text.dropFirst(digits.count) {
        case "ms": return .milliseconds(number)
        case "s": return .seconds(number)
        case "m": return .seconds(number * 60)
        case "h": return .seconds(number * 3600)
        default: throw Fault("\(text) is no duration (500ms, 30s, 5m, 1h)")
        }
    }

    static let help = """
        Usage: postbell-fake-providers --certificates DIR [options]

        Imitates Apple's push service over real TLS and HTTP/2: checks provider tokens, headers, topics and sizes,
        obeys and enforces stream limits, and misbehaves by the device token's prefix (docs/fake-providers.md).

        Example:
          postbell-fake-providers --certificates /tmp/fake --make-key --topic com.example.app --log /tmp/fake/log.jsonl
          curl --http2 --cacert /tmp/fake/ca.pem https://localhost:PORT/3/device/00fc13ad

        Options:
          --listen HOST:PORT   numeric address to listen on (127.0.0.1:0; port 0 lets the system choose)
          --certificates DIR   makes a throw-away authority and server certificate for localhost there, each time:
                               ca.pem, server.pem, server.key
          --make-key           makes DIR/apns.p8, a test key, and accepts provider tokens signed with it
          --apns-key FILE      accepts provider tokens signed with this .p8 key (or its public half as PEM)
          --key-id ID          key id of that key (ABC123DEFG)
          --team-id ID         team of that key (DEF123GHIJ)
          --topic BUNDLE       accepted bundle id; may be repeated; without it, all
          --streams N          concurrent streams allowed after a valid token (1000)
          --streams-before-token N  and before it (1); load tools that do not wait for SETTINGS need more
          --sandbox            answers carry apns-unique-id
          --throttle           a rejected push lowers the stream limit to 1 until the next accepted one
          --slowness DURATION  wait before the answer to a token with the prefix fa003 (500ms)
          --log FILE           a line of JSON for each request, before its answer (-: standard output, the default)
          --no-log             no such lines
          --port-file FILE     writes the port there once it listens
          --exit-after DURATION  stops by itself after 500ms, 30s, 5m, 1h
          --help               this text

        Without --make-key and --apns-key every readable provider token is accepted unverified.
        The first line of output says in JSON where it listens; SIGTERM and SIGINT stop it with a summary.
        """
}
