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
            let number = UInt64(made)
            let path = batch.append { bytes in
                bytes.append(contentsOf: "/3/device/".utf8)
                appendHex(number, to: &bytes, digits: 64)
            }
            let identifier = batch.append { appendUUID(number, to: &$0) }
            let collapse = batch.append { bytes in
                bytes.append(contentsOf: "thread-".utf8)
                appendHex(number, to: &bytes, digits: 16)
            }
            let expiration = batch.append { $0.append(contentsOf: "1893456000".utf8) }
            var fields = InlineArray<4, HTTPRequestField>(
                repeating: HTTPRequestField(Self.identifierName, identifier))
            fields[1] = HTTPRequestField(Self.collapseName, collapse)
            fields[2] = HTTPRequestField(Self.expirationName, expiration)
            batch.add(tag: number, shared: shared, path: path, fields: fields, count: 3, body: body)
        }
        return batch
    }

    private static let identifierName = HTTPFieldName("apns-id")
    private static let collapseName = HTTPFieldName("apns-collapse-id")
    private static let expirationName = HTTPFieldName("apns-expiration")

    /// Prints the line of figures; answers the exit status.
    nonisolated func report() -> Int32 {
        outcome.report(options)
    }
}

/// Appends the low digits of `number`, spread by a multiplication so that neighbours look unlike each other.
private func appendHex(_ number: UInt64, to bytes: inout [UInt8], digits: Int) {
    var rest = number &* 0x9E37_79B9_7F4A_7C15
    for index in 0..<digits {
        if index.isMultiple(of: 16) { rest = (number &+ UInt64(index)) &* 0x9E37_79B9_7F4A_7C15 }
        let digit = UInt8(truncatingIfNeeded: rest & 15)
        bytes.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
        rest >>= 4
    }
}

private func appendUUID(_ number: UInt64, to bytes: inout [UInt8]) {
    for (index, digits) in [8, 4, 4, 4, 12].enumerated() {
        if index > 0 { bytes.append(UInt8(ascii: "-")) }
        appendHex(number &+ UInt64(index) << 32, to: &bytes, digits: digits)
    }
}
