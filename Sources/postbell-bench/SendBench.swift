import EventLoop
import Glibc
import HTTP2
import Synchronization

/// Keeps the HTTP/2 client busy with APNs-like requests and measures what that costs this process.
///
/// Path, `apns-id` and `apns-collapse-id` are new with every request, as in production; the bearer, topic, push
/// type and priority are shared. Every status is checked: a client that is only fast at failing would shine otherwise.
actor SendBench {
    private let options: SendOptions
    private let loop: EventLoop
    private let outcome = OutcomeBox()
    private var client: HTTP2Client?
    private var made = 0
    private var ended = 0
    private var failures = 0
    private var firstFailure: String?
    private var waiter: UnsafeContinuation<Void, Never>?
    private var isOver = false
    private let body: [UInt8]
    private let bearer: String

    init(_ options: SendOptions, on loop: EventLoop) {
        self.options = options
        self.loop = loop
        let text = Array("{\"aps\":{\"alert\":\"".utf8)
        let end = Array("\"}}".utf8)
        let filler = max(0, options.bodyBytes - text.count - end.count)
        body = text + [UInt8](repeating: UInt8(ascii: "x"), count: filler) + end
        bearer = "bearer " + String(repeating: "eyJhbGciOiJFUzI1NiJ9", count: 10)
    }

    nonisolated var unownedExecutor: UnownedSerialExecutor {
        loop.asUnownedSerialExecutor()
    }

    /// Sends all requests, or as many as get an answer until `deadline`.
    func run(until deadline: ContinuousClock.Instant) async {
        var configuration = HTTP2ClientConfiguration(host: options.host, port: options.port)
        configuration.caFile = options.caFile
        configuration.concurrency = options.streams
        configuration.queueLimit = options.streams
        configuration.connectionsMax = 1
        // Under callgrind the handshake alone takes seconds.
        configuration.requestTimeout = .seconds(60)
        configuration.connectTimeout = .seconds(60)
        configuration.capturedHeaders = ["apns-id"]
        let client = HTTP2Client(configuration, on: loop) { [weak self] results in
            self?.assumeIsolated { $0.take(&results) }
        } stateChanged: { [weak self] _ in
            self?.assumeIsolated { $0.submit() }
        }
        self.client = client
        let start = Usage.now
        loop.arm(at: deadline) { [weak self] in self?.assumeIsolated { $0.finish() } }
        await withUnsafeContinuation {
            waiter = $0
            submit()
        }
        outcome.set(start: start, end: .now, ended: ended, failures: failures, firstFailure: firstFailure)
        await client.close(within: .zero)
    }

    private func take(_ batch: inout HTTPResultBatch) {
        for result in batch.results {
            ended += 1
            if case .success(let response) = result.outcome, response.status == options.status { continue }
            failures += 1
            if firstFailure == nil { firstFailure = describe(result.outcome) }
        }
        if ended == options.requests { finish() } else { submit() }
    }

    private func describe(_ outcome: Result<HTTPResponse, HTTPFault>) -> String {
        switch outcome {
        case .success(let response): "status \(response.status)"
        case .failure(let fault): "\(fault)"
        }
    }

    private func finish() {
        isOver = true
        waiter?.resume()
        waiter = nil
    }

    private func submit() {
        guard let client, !isOver else { return }
        let room = min(client.assumeIsolated { $0.capacity }, options.requests - made)
        guard room > 0 else { return }
        let batch = makeBatch(room)
        client.assumeIsolated { $0.submit(batch) }
    }

    private func makeBatch(_ count: Int) -> HTTPRequestBatch {
        var batch = HTTPRequestBatch()
        batch.reserve(requests: count, bytes: count * 160 + body.count)
        let shared = batch.addSharedHeaders([
            HTTPHeader("authorization", bearer, isSensitive: true),
            HTTPHeader("apns-topic", "com.example.app"),
            HTTPHeader("apns-push-type", "alert"),
            HTTPHeader("apns-priority", "10"),
        ])
        let body = batch.append { $0.append(contentsOf: self.body) }
        for _ in 0..<count {
            made += 1
            let number = made
            let path = batch.append { bytes in
                bytes.append(contentsOf: Self.pathStart)
                appendHex(number, to: &bytes, count: 16)
            }
            let identifier = batch.append { bytes in
                bytes.append(contentsOf: Self.identifierStart)
                appendHex(number, to: &bytes, count: 12)
            }
            let collapse = batch.append { bytes in
                bytes.append(contentsOf: Self.collapseStart)
                appendHex(number, to: &bytes, count: 16)
            }
            let expiration = batch.append { $0.append(contentsOf: Self.expiration) }
            var fields = InlineArray<4, HTTPRequestField>(
                repeating: HTTPRequestField(Self.identifierName, identifier))
            fields[1] = HTTPRequestField(Self.collapseName, collapse)
            fields[2] = HTTPRequestField(Self.expirationName, expiration)
            batch.add(tag: UInt64(number), shared: shared, path: path, fields: fields, count: 3, body: body)
        }
        return batch
    }

    // What is new with each request stands at the end of a value; its beginning need not be made again.
    private static let pathStart = Array("/3/device/00fc13adff785122b4ad28809a3420982341241421348097".utf8)
    private static let identifierStart = Array("eabeae54-14a8-11e5-b60b-".utf8)
    private static let collapseStart = Array("thread-".utf8)
    private static let expiration = Array("1893456000".utf8)
    private static let identifierName = HTTPFieldName("apns-id")
    private static let collapseName = HTTPFieldName("apns-collapse-id")
    private static let expirationName = HTTPFieldName("apns-expiration")

    /// Prints the line of figures; answers the exit status.
    nonisolated func report() -> Int32 {
        outcome.report(options)
    }
}

/// Appends `count` hexadecimal digits that depend on `number`; neighbours look unlike each other.
private func appendHex(_ number: Int, to bytes: inout [UInt8], count: Int) {
    var rest = UInt64(number) &* 0x9E37_79B9_7F4A_7C15
    for _ in 0..<count {
        let digit = UInt8(truncatingIfNeeded: rest & 15)
        bytes.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
        rest >>= 4
    }
}
