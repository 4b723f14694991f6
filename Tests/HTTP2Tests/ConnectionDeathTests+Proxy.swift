import Foundation
import HTTP2
import Testing

/// Deaths of connections through an HTTP proxy: before a request has left, whatever the proxy does costs nothing.
extension ConnectionDeathTests {
    static let withoutTunnel = [
        Death.proxy("the proxy closes before it answers") { _ in },
        Death.proxy("the proxy resets before it answers") { $0.resetOnClose() },
        Death.proxy("the proxy closes in the midst of its answer") { $0.write("HTTP/1.1 200 Conn") },
        Death.proxy("the proxy resets in the midst of its answer") {
            $0.write("HTTP/1.1 200 OK\r\nVia: ")
            $0.resetOnClose()
        },
        Death.proxy("the proxy answers 407") { $0.write("HTTP/1.1 407 No\r\n\r\n") },
        Death.proxy("the proxy answers 502") { $0.write("HTTP/1.1 502 No\r\n\r\n") },
        Death.proxy("the proxy answers garbage") {
            $0.write([UInt8](repeating: 0xFF, count: 200))
            $0.drain()
        },
        Death.proxy("the proxy's answer is too long") {
            $0.write("HTTP/1.1 200 OK\r\n" + String(repeating: "a: b\r\n", count: 100_000))
            $0.drain()
        },
        Death.proxy("the proxy never answers") { $0.drain() }.with(impatience),
        Death.proxy("the proxy never ends its answer") {
            $0.write("HTTP/1.1 200 OK\r\n")
            $0.drain()
        }.with(impatience),
        Death.proxy("the proxy refuses the connection") { _ in }.with {
            $0.proxy = (try? NoServer()).flatMap { try? HTTPProxy(url: "http://127.0.0.1:\($0.port)") }
        },
    ]

    static let withinTunnel = [
        Death.proxy("the proxy closes after 200, before TLS") { $0.write(opened) },
        Death.proxy("the proxy resets after 200, before TLS") {
            $0.write(opened)
            $0.resetOnClose()
        },
        Death.proxy("the proxy is silent after 200") {
            $0.write(opened)
            $0.drain()
        }.with(impatience),
        Death.proxy("the proxy closes at the first bytes of TLS") {
            $0.write(opened)
            _ = $0.readSome()
        },
        Death.proxy("the proxy closes within the server's part of the handshake") {
            $0.write(opened)
            try $0.tunnel(to: $0.port, downMax: 200)
        },
        Death.proxied("the proxy dies before SETTINGS", unsent, acted: []) { connection, _, proxy in
            try connection.expectPreface()
            proxy.stop()
        },
        Death.proxied("the proxy falls silent before SETTINGS", unsent, acted: []) { connection, _, proxy in
            try connection.expectPreface()
            proxy.fallSilent()
            connection.sendSettings([(3, 100)])
            connection.drain()
        }.with(impatience),
        Death.proxied("the proxy dies after the request left", lost, acted: [1]) { connection, record, proxy in
            try connection.begin()
            record.act(try connection.nextRequest())
            proxy.stop()
        },
        Death.proxied("the proxy keeps the answer and dies", lost, acted: [1]) { connection, record, proxy in
            try connection.begin()
            let request = try connection.nextRequest()
            record.act(request)
            proxy.fallSilent()
            connection.respond(request.stream)
            proxy.stop()
        },
        Death.proxied("the proxy keeps the request and dies", lost, acted: []) { connection, _, proxy in
            try connection.expectPreface()
            proxy.keepRequests()
            connection.sendSettings([(3, 100)])
            proxy.waitUntilKept(body.count)
            proxy.stop()
        }.doing { harness, _ in await harness.submit(body: body) },
        Death.proxied("the proxy falls silent after the request left", [.unanswered(.timeout)], acted: [1]) {
            connection, record, proxy in
            try connection.begin()
            record.act(try connection.nextRequest())
            proxy.fallSilent()
            connection.drain()
        }.with { $0.requestTimeout = .seconds(3) },
    ]

    private static let opened = "HTTP/1.1 200 OK\r\n\r\n"
    private static let unsent: [Death.End] = [.notSent(.noConnection)]
    private static let lost: [Death.End] = [.unanswered(.connectionLost)]
    private static let body = [UInt8](repeating: 1, count: 3000)
}
