import EventLoop

/// Where a client connects to, and every bound it keeps. Defaults are those of the configuration reference.
package struct HTTP2ClientConfiguration: Sendable {
    /// Host name or numeric address; what the peer's certificate must be for.
    package var host: String
    /// TCP port.
    package var port: UInt16
    /// Name resolution, TCP, the proxy's answer, TLS and the peer's first SETTINGS together.
    package var connectTimeout: Duration = .seconds(10)
    /// How long an address may be tried before the next one of the host is tried beside it. RFC 8305 5 recommends this
    /// value, and allows 100 ms to 2 s.
    package var attemptDelay: Duration = .milliseconds(250)
    /// From submission to the whole answer. A request that still waits after three quarters of it is not sent any more,
    /// so that what does leave has a fair time to be answered.
    package var requestTimeout: Duration = .seconds(10)
    /// Silence, with requests open, before a PING.
    package var pingAfter: Duration = .seconds(15)
    /// Silence after a PING before the connection counts as dead.
    package var pingTimeout: Duration = .seconds(5)
    /// Time between two PINGs of a connection without requests. Apple tolerates one an hour.
    package var idlePingInterval: Duration = .seconds(3600)
    /// Idle connections above the first are closed after this long.
    package var idleTimeout: Duration = .seconds(3600)
    /// Connections are replaced at this age, less up to a tenth so that they do not all end together.
    package var connectionLifetime: Duration = .seconds(86_400)
    /// Most connections at a time.
    package var connectionsMax = 4
    /// Most requests in flight, over all connections.
    package var concurrency = 1000
    /// Streams open at once on one connection, however many more the peer allows: some name a higher number than that
    /// at which they begin to refuse.
    package var streamsMax = Int(Int32.max)
    /// Most requests that wait for a stream.
    package var queueLimit = 500
    /// Bytes of a response's body that are kept; the rest is discarded and acknowledged.
    package var bodyLimit = 16 * 1024
    /// Most bytes of a response's header list, counted as in RFC 9113 6.5.2; told to the peer and enforced.
    package var headerListLimit = 16 * 1024
    /// Names, lower case, of the response headers to keep; at most four.
    package var capturedHeaders: [String] = []
    /// A file of PEM certificates that are trusted in addition to the system's.
    package var caFile: String?
    /// The proxy to go through; nil for straight to the host.
    package var proxy: HTTPProxy?
    /// How often a request is sent in all before `notSent` is given back: refusals and GOAWAYs call for another try.
    package var triesMax = 3
    /// How long every stream must have been taken, with requests waiting, before another connection is opened.
    package var busyBeforeAnother: Duration = .milliseconds(50)
    /// Unanswered requests in a row after which a connection is replaced.
    package var timeoutsMax = 5
    /// Answers with status 500 in a row after which a connection is replaced.
    package var serverErrorsMax = 20
    /// Wait after a first failed connection; doubles with each further one, and is jittered.
    package var backoffFirst: Duration = .seconds(1)
    /// Longest wait between connections.
    package var backoffMax: Duration = .seconds(60)
    /// A connection whose next stream id is above this is replaced; ids end at 2^31 − 1 (RFC 9113 5.1.1).
    package var streamIDMax: Int32 = .max - 10_000

    /// A client of `host`, with defaults for everything else.
    package init(host: String, port: UInt16) {
        self.host = host
        self.port = port
    }

    /// The value of `:authority`: the host, with the port unless it is the scheme's own.
    var authority: String { port == 443 ? name : "\(name):\(port)" }

    /// What a proxy is asked for: always with the port (RFC 9112 3.2.3).
    var tunnelTarget: String { "\(name):\(port)" }

    /// Who is connected to, for messages, before an address is known.
    var peer: String { proxy.map { "\(tunnelTarget) through the proxy \($0)" } ?? tunnelTarget }

    /// The same once the address is known.
    func peer(at address: SocketAddress) -> String {
        proxy.map { "\(tunnelTarget) through the proxy \($0.host) (\(address))" } ?? "\(host) (\(address))"
    }

    private var name: String { host.contains(":") ? "[\(host)]" : host }

    /// How long a request may wait for a stream.
    var queueTimeout: Duration { requestTimeout * 3 / 4 }

    /// Ends the program when a bound is nonsense: configurations are checked where they are read.
    func check() {
        precondition(!host.isEmpty && port > 0, "a client needs a host and a port")
        precondition(connectionsMax >= 1 && concurrency >= 1 && streamsMax >= 1, "bounds start at 1")
        precondition(queueLimit >= 1 && triesMax >= 1, "bounds start at 1")
        precondition(host.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F }, "a host has no spaces and no line ends")
        precondition(capturedHeaders.count <= 4, "at most four response headers are kept")
        precondition(bodyLimit >= 0 && headerListLimit >= 1024, "bounds of a response are too small")
    }
}
