import HTTP2
import Operations

extension HTTP2ClientConfiguration {
    /// Connections to a provider's host as the operator has configured them.
    init(host: String, port: UInt16, _ connections: Configuration.Connections) {
        self.init(host: host, port: port)
        concurrency = connections.concurrency
        connectionsMax = connections.most
        requestTimeout = connections.requestTimeout
        connectTimeout = connections.connectTimeout
        pingAfter = connections.pingAfter
        pingTimeout = connections.pingTimeout
        idleTimeout = connections.idleTimeout
        caFile = connections.certificateFile
        proxy = connections.proxy(to: host)
    }
}
