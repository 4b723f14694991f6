import Foundation
import HTTP2
import Testing

/// Deaths of connections that had a request on them, and those that we bring about ourselves.
extension ConnectionDeathTests {
    private static let lost: [Death.End] = [.unanswered(.connectionLost)]

    static let late = [
        Death.scripted("closed in order after the request was read", lost, acted: [1]) { connection, record in
            try connection.begin()
            record.act(try connection.nextRequest())
        },
        Death.scripted("FIN without close_notify", lost, acted: [1]) { connection, record in
            try connection.begin()
            record.act(try connection.nextRequest())
            connection.hangUp()
        },
        Death.scripted("reset by TCP after the request was read", lost, acted: [1]) { connection, record in
            try connection.begin()
            record.act(try connection.nextRequest())
            throw connection.abort()
        },
        Death.scripted("reset by TCP before the request was read", lost, acted: []) { connection, _ in
            try connection.begin()
            connection.waitForUnread()
            throw connection.abort()
        },
        Death.scripted("a record that TLS cannot believe", lost, acted: [1]) { connection, record in
            try connection.begin()
            record.act(try connection.nextRequest())
            connection.sendBelowTLS([23, 3, 3, 0, 32] + [UInt8](repeating: 0xAA, count: 32))
            connection.drain()
        },
        Death.scripted("garbage in place of frames", lost, acted: [1]) { connection, record in
            try connection.begin()
            record.act(try connection.nextRequest())
            connection.sendRaw([UInt8](repeating: 0xFF, count: 200))
            connection.drain()
        },
        Death.scripted("closed between the answer's headers and its body", lost, acted: [1]) { connection, record in
            try connection.begin()
            let request = try connection.nextRequest()
            record.act(request)
            connection.send(connection.headers(request.stream, [(":status", "200")], end: false))
        },
        Death.scripted("closed within the answer's body", lost, acted: [1]) { connection, record in
            try connection.begin()
            let request = try connection.nextRequest()
            record.act(request)
            connection.send(connection.headers(request.stream, [(":status", "400")], end: false))
            try connection.sendBody(request.stream, count: 100, end: false)
        },
        Death.scripted("closed after an interim answer", lost, acted: [1]) { connection, record in
            try connection.begin()
            let request = try connection.nextRequest()
            record.act(request)
            connection.send(connection.headers(request.stream, [(":status", "100")], end: false))
        },
        Death.scripted("an answer without a status", [.unanswered(.malformedAnswer)], acted: [1]) {
            connection, record in
            try connection.begin()
            let request = try connection.nextRequest()
            record.act(request)
            connection.send(connection.headers(request.stream, [("apns-id", "1")], end: true))
            connection.drain()
        },
        Death.scripted("no answer in time", [.unanswered(.timeout)], acted: [1]) { connection, record in
            try connection.begin()
            while true { record.act(try connection.nextRequest()) }
        }.with { $0.requestTimeout = .seconds(3) },
        Death.scripted("no answer to a PING", lost, acted: [1]) { connection, record in
            try connection.begin()
            connection.answersPings = false
            record.act(try connection.nextRequest())
            connection.drain()
        }.with {
            $0.pingAfter = .milliseconds(100)
            $0.pingTimeout = .milliseconds(100)
        },
        Death.scripted("reset half way through the request's frames", lost, acted: []) { connection, _ in
            try connection.begin([(3, 100), (4, 0x7FFF_FFFF)])
            connection.sendWindow(0, 0x7FFF_0000)
            // Not one byte of the body is read; what lies in the buffers of both sides is a part of it.
            connection.waitForUnread()
            throw connection.abort()
        }.doing { harness, _ in await harness.submit(body: huge) },
        Death.scripted("closed while the body waits for the stream's window", lost, acted: []) { connection, _ in
            try connection.begin([(3, 100), (4, 1000)])
            while try connection.nextFrame().type != Frame.data {}
        }.doing { harness, _ in await harness.submit(body: [UInt8](repeating: 1, count: 3000)) },
    ]

    /// More than the buffers of two sockets take.
    private static let huge = [UInt8](repeating: 1, count: 16 * 1024 * 1024)

    /// One request in flight, one that waits for its stream.
    private static func oneStream(_ name: String, _ ends: [Death.End]) -> Death {
        Death.scripted(name, ends, acted: [1]) { connection, record in
            try connection.begin([(3, 1)])
            while true { record.act(try connection.nextRequest()) }
        }.with { $0.requestTimeout = .seconds(4) }
    }

    private static func submitTwo(_ harness: ClientHarness, _ record: ActRecord) async throws {
        await harness.submit(2)
        try await harness.wait("the server has one") { _ in record.acts.count == 1 }
    }

    static let ours = [
        oneStream("we close while one waits", [.unanswered(.connectionLost), .notSent(.closed)])
            .doing { harness, record in
                try await submitTwo(harness, record)
                await harness.close()
            },
        oneStream("we take back what waits", [.unanswered(.timeout), .notSent(.closed)])
            .doing { harness, record in
                try await submitTwo(harness, record)
                await harness.cancelQueued()
            },
        oneStream("the wait for a stream is over", [.unanswered(.timeout), .notSent(.timeout)]),
        Death.scripted("the peer allows no stream", [.notSent(.timeout)], acted: []) { connection, record in
            try connection.begin([(3, 0)])
            try serve(connection, record)
        }.with { $0.requestTimeout = .seconds(1) },
    ]
}
