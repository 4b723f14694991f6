import EventLoop
package import HTTP2

/// The HTTP/2 client against a server of other people, as a test looks at it: requests in, answers out.
package actor PeerClient {
    /// What became of one request.
    package struct Answer: Sendable {
        /// The response, or why there is none.
        package let outcome: Result<HTTPResponse, HTTPFault>
        /// Values of the captured headers.
        package let captured: [String]
        package let body: [UInt8]
    }

    private nonisolated let loop: EventLoop
    private var client: HTTP2Client?
    private var answers: [UInt64: Answer] = [:]
    private var awaited = 0
    private var waiter: UnsafeContinuation<Void, Never>?

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    private init(on loop: EventLoop) {
        self.loop = loop
    }

    /// Runs `body` with a client of the server at `port`, on a loop of its own, and closes it afterwards.
    package static func run(
        port: UInt16, caFile: String, capturing headers: [String], _ body: (PeerClient) async throws -> Void
    ) async throws {
        let loop = EventLoop.startThread(name: "peer-client")
        defer { loop.stop() }
        var configuration = HTTP2ClientConfiguration(host: "localhost", port: port)
        configuration.caFile = caFile
        configuration.capturedHeaders = headers
        // The peers serve one connection.
        configuration.connectionsMax = 1
        // Each request has a result after this long at the latest, so no test waits for ever.
        configuration.requestTimeout = .seconds(60)
        configuration.connectTimeout = .seconds(60)
        let client = PeerClient(on: loop)
        await client.begin(configuration)
        do {
            try await body(client)
        } catch {
            await client.client?.close(within: .zero)
            throw error
        }
        await client.client?.close(within: .zero)
    }

    private func begin(_ configuration: HTTP2ClientConfiguration) {
        client = HTTP2Client(configuration, on: loop) { [weak self] batch in
            self?.assumeIsolated { $0.take(batch) }
        } stateChanged: { _ in
        }
    }

    /// Sends all of `batch` and answers what became of it by tag.
    package func exchange(_ batch: HTTPRequestBatch) async -> [UInt64: Answer] {
        answers = [:]
        awaited = batch.requests.count
        submit(batch)
        await withUnsafeContinuation { if answers.count < awaited { waiter = $0 } else { $0.resume() } }
        return answers
    }

    private func submit(_ batch: HTTPRequestBatch) {
        client?.assumeIsolated { $0.submit(batch) }
    }

    private func take(_ batch: HTTPResultBatch) {
        for result in batch.results {
            var body: [UInt8] = []
            var captured: [String] = []
            if case .success(let response) = result.outcome {
                body = Array(batch[response.body])
                captured = (0..<4).map { String(decoding: batch[response.captured[$0]], as: UTF8.self) }
            }
            answers[result.tag] = Answer(outcome: result.outcome, captured: captured, body: body)
        }
        guard answers.count >= awaited else { return }
        waiter?.resume()
        waiter = nil
    }
}
