import EventLoop
import Foundation
import HTTP2
import Testing

/// The server's own record of what it has acted on: the requests that are out in the world, whatever their client
/// knows.
final class ActRecord: Sendable {
    private let counts = Guarded([String: Int]())

    func act(_ request: ReceivedRequest) {
        let id = request["apns-id"] ?? "without an id"
        counts.withLock { $0[id, default: 0] += 1 }
    }

    /// How often each was acted on, by its `apns-id`.
    var acts: [String: Int] { counts.withLock { $0 } }
}

/// One way in which a connection can die, and what has to become of the requests on it.
struct Death: Sendable, CustomTestStringConvertible {
    /// The result of a request.
    enum End: Equatable, Sendable {
        case answered(Int)
        case notSent(HTTPFaultReason)
        case unanswered(HTTPFaultReason)

        init(_ result: Ended) {
            self =
                switch result.outcome {
                case .success(let response): .answered(response.status)
                case .failure(.notSent(let reason)): .notSent(reason)
                case .failure(.unanswered(let reason)): .unanswered(reason)
                }
        }
    }

    let testDescription: String
    /// The ends of requests 1, 2 and so on.
    let ends: [End]
    /// Which of them the server has acted on, by number.
    let acted: Set<Int>
    var change: @Sendable (inout HTTP2ClientConfiguration) -> Void = { _ in }
    /// What the test does; without it, it submits all requests.
    var act: (@Sendable (ClientHarness, ActRecord) async throws -> Void)?
    let start: @Sendable (ActRecord) throws -> any PeerWitness

    /// A server that a script plays, from the end of the TLS handshake on.
    static func scripted(
        _ name: String, _ ends: [End], acted: Set<Int>,
        _ script: @escaping @Sendable (ServerConnection, ActRecord) throws -> Void
    ) -> Death {
        Death(testDescription: name, ends: ends, acted: acted) { record in
            try ScriptedServer { try script($0, record) }
        }
    }

    /// A proxy that a script plays, before a server that is never asked for anything.
    static func proxy(_ name: String, _ script: @escaping ScriptedProxy.Script) -> Death {
        Death(testDescription: name, ends: [.notSent(.noConnection)], acted: []) { _ in
            ProxiedServer(server: try ScriptedServer { $0.drain() }, proxy: try ScriptedProxy(script))
        }
    }

    /// A server that a script plays, behind a proxy that opens each tunnel until the script has it do something else.
    static func proxied(
        _ name: String, _ ends: [End], acted: Set<Int>,
        _ script: @escaping @Sendable (ServerConnection, ActRecord, ScriptedProxy) throws -> Void
    ) -> Death {
        Death(testDescription: name, ends: ends, acted: acted) { record in
            let proxy = try ScriptedProxy.honest()
            return ProxiedServer(server: try ScriptedServer { try script($0, record, proxy) }, proxy: proxy)
        }
    }

    /// The same with a client of another configuration.
    func with(_ change: @escaping @Sendable (inout HTTP2ClientConfiguration) -> Void) -> Death {
        var changed = self
        changed.change = change
        return changed
    }

    /// The same with something else to do than to submit all requests.
    func doing(_ act: @escaping @Sendable (ClientHarness, ActRecord) async throws -> Void) -> Death {
        var changed = self
        changed.act = act
        return changed
    }

    /// A server below TLS.
    static func raw(
        _ name: String, _ script: @escaping @Sendable (_ client: Int32, _ read: () -> Int) -> Void
    ) -> Death {
        Death(testDescription: name, ends: [.notSent(.noConnection)], acted: []) { _ in
            try RecordServer(script)
        }
    }
}

/// Where nobody listens.
final class NoServer: PeerWitness {
    let port: UInt16

    init() throws {
        let (descriptor, port) = try ScriptedServer.listen()
        close(descriptor)
        self.port = port
    }

    var connections: Int { 0 }
    var applicationBytes: Int { 0 }
    var requestFrames: Int { 0 }
    func waitForEnd() -> Bool { true }
    func stop() {}
}

/// A server and the proxy that leads to it.
struct ProxiedServer: PeerWitness {
    let server: ScriptedServer
    let proxy: ScriptedProxy

    var port: UInt16 { server.port }
    var connections: Int { server.connections }
    var applicationBytes: Int { server.applicationBytes }
    var requestFrames: Int { server.requestFrames }
    func waitForEnd() -> Bool { server.waitForEnd() }

    func stop() {
        proxy.stop()
        server.stop()
    }
}
