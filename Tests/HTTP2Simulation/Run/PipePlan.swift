import HTTP2
import OutboxCore

/// What a seed decides before a run begins: the client's bounds, what is asked of it, and how often what goes wrong.
/// Times are microseconds.
struct PipePlan {
    /// What the client's owner does.
    enum Doing {
        /// Hands over so many requests with bodies of at most so many bytes.
        case submit(count: Int, body: Int)
        case cancelQueued
        case replaceConnections
        /// Closes the client within so long, and goes on with a new one.
        case restart(within: Int64)
    }

    let seed: UInt64
    let configuration: HTTP2ClientConfiguration
    let requestTimeout: Int64
    let pingAfter: Int64
    let idlePing: Int64
    /// Streams that a peer's first SETTINGS allows; nil for one that names no limit.
    let streams: Int?
    /// How long bytes are on their way, a request is looked at, an answer takes.
    let way: ClosedRange<Int>
    let thinking: ClosedRange<Int>
    let answerWay: ClosedRange<Int>
    let safetyLength: Int64
    let rates: [Double]
    let doings: [(at: Int64, doing: Doing)]

    init(seed: UInt64) {
        self.seed = seed
        var random = SplitMix(seed: seed ^ 0x481F_0D_F1BE)
        func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }
        func chance(_ share: Double) -> Bool { random.fraction() < share }
        requestTimeout = Int64(number(500...10_000)) * 1000
        pingAfter = Int64(number(300...15_000)) * 1000
        idlePing = Int64(chance(0.5) ? 3600 : number(16...60)) * 1_000_000
        var configuration = HTTP2ClientConfiguration(host: "peer.invalid", port: 443)
        configuration.connectTimeout = .milliseconds(number(500...10_000))
        configuration.requestTimeout = .microseconds(requestTimeout)
        configuration.pingAfter = .microseconds(pingAfter)
        configuration.pingTimeout = .milliseconds(number(200...5000))
        configuration.idlePingInterval = .microseconds(idlePing)
        configuration.idleTimeout = .seconds(chance(0.5) ? 3600 : number(1...20))
        configuration.connectionLifetime = .seconds(chance(0.7) ? 86_400 : number(2...30))
        configuration.connectionsMax = number(1...4)
        configuration.concurrency = chance(0.3) ? number(1...4) : number(5...200)
        configuration.queueLimit = number(1...100)
        configuration.streamsMax = chance(0.8) ? Int(Int32.max) : number(1...10)
        configuration.bodyLimit = chance(0.5) ? 16 * 1024 : number(0...500)
        configuration.capturedHeaders = ["apns-id"]
        configuration.triesMax = number(1...4)
        configuration.timeoutsMax = number(1...6)
        configuration.serverErrorsMax = number(1...20)
        configuration.backoffFirst = .milliseconds(number(100...1000))
        configuration.backoffMax = .seconds(number(2...20))
        if chance(0.1) { configuration.streamIDMax = Int32(number(3...60)) }
        self.configuration = configuration
        streams = chance(0.2) ? nil : chance(0.3) ? number(1...2) : number(3...100)
        way = chance(0.3) ? 1...number(2...300) : 100...number(1000...60_000)
        thinking = 1...number(10...60_000)
        answerWay = 1...number(100...Int(requestTimeout) * 2 / 3)
        safetyLength = Int64(number(5...25)) * 1_000_000
        let isCalm = chance(0.05)
        rates = PipeFault.allCases.map { fault in
            let rate = random.fraction() < 0.25 ? fault.worstRate * random.fraction() : 0
            return isCalm ? 0 : rate
        }
        doings = Self.drawDoings(until: safetyLength, &random)
    }

    private static func drawDoings(
        until end: Int64, _ random: inout SplitMix
    ) -> [(at: Int64, doing: Doing)] {
        var doings: [(at: Int64, doing: Doing)] = []
        let largest = random.fraction() < 0.2 ? 80_000 : random.fraction() < 0.3 ? 0 : 2000
        for _ in 0..<Int.random(in: 5...40, using: &random) {
            let at = Int64.random(in: 0..<end, using: &random)
            let draw = random.fraction()
            let count = Int.random(in: 1...(random.fraction() < 0.2 ? 40 : 6), using: &random)
            let within = Int64.random(in: 0...3000, using: &random) * 1000
            let doing: Doing =
                draw < 0.85
                ? .submit(count: count, body: largest)
                : draw < 0.9 ? .cancelQueued : draw < 0.95 ? .replaceConnections : .restart(within: within)
            doings.append((at, doing))
        }
        return doings.enumerated().sorted { ($0.element.at, $0.offset) < ($1.element.at, $1.offset) }.map(\.element)
    }
}
