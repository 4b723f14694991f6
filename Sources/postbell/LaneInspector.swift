import DispatchRuntime
import EventLoop
import HTTP2
import Operations
import OutboxCore
import Telemetry

/// Answers what `postbell check` asks about providers, with the lanes that a worker would have.
struct LaneInspector: ProviderInspector {
    func credentials(of configuration: Configuration) -> [CheckItem] {
        let items = APNSInspector(configuration).run() + FCMInspector(configuration).run()
        if items.contains(where: { $0.status == .failure }) { return items }
        do throws(CommandFailure) {
            if !items.isEmpty { try lanes(configuration).checkCAFile() }
        } catch {
            return items + CheckItem.failures(.credential, error)
        }
        guard items.isEmpty else { return items }
        return [
            .warning(
                .credential, "no provider is configured: a worker claims nothing",
                next: "set APNS_KEY_FILE, APNS_KEY_ID, APNS_TEAM_ID and APNS_TOPIC, or FCM_SERVICE_ACCOUNT_FILE")
        ]
    }

    func endpoints(of configuration: Configuration, on loop: EventLoop) async -> [CheckItem] {
        let worker = lanes(configuration)
        guard let lanes = try? worker.make(on: loop) else { return [] }
        var uses = lanes.map { (name: $0.description.name, transport: $0.transport) }
        if let transport = worker.tokenTransport { uses.append(("FCM's access tokens", transport)) }
        var items: [CheckItem] = []
        var seen: [String: [String]] = [:]
        var transports: [(name: String, transport: HTTP2ClientConfiguration)] = []
        for use in uses {
            let name = "\(use.transport.host):\(use.transport.port)"
            if seen[name] == nil { transports.append((name, use.transport)) }
            seen[name, default: []].append(use.name)
        }
        for (name, transport) in transports {
            let uses = (seen[name] ?? []).joined(separator: ", ")
            items.append(await Self.endpoint("\(name) for \(uses)", transport, on: loop))
        }
        return items
    }

    func covers(_ route: Route, in configuration: Configuration) -> Bool {
        lanes(configuration).cover(route)
    }

    private func lanes(_ configuration: Configuration) -> WorkerLanes {
        WorkerLanes(configuration, log: LogWriter(level: .error, format: .logfmt, hasPriorities: false))
    }

    // MARK: Endpoints

    private static func endpoint(
        _ name: String, _ transport: HTTP2ClientConfiguration, on loop: EventLoop
    ) async -> CheckItem {
        do throws(HTTP2ConnectionError) {
            let handshake = try await HTTP2Handshake.attempt(transport, on: loop)
            let (seconds, attoseconds) = handshake.duration.components
            let milliseconds = seconds * 1000 + attoseconds / 1_000_000_000_000_000
            return .ok(
                .endpoint,
                "\(name): HTTP/2 after \(milliseconds) ms, \(handshake.streams) streams before the first push")
        } catch {
            return .failure(
                .endpoint, error.code == .caFile ? .configuration : .unreachable,
                "\(name): \(error.code.rawValue): \(error.reason)", next: remedy(error.code))
        }
    }

    private static func remedy(_ code: HTTP2ConnectionError.Code) -> String {
        switch code {
        case .nameResolution: "see that this machine resolves the name (DNS)"
        case .connect, .connectTimeout: "let this machine reach the host and port (firewall, network policy)"
        case .proxyAuthentication, .proxy: "see that POSTBELL_PROXY names the right proxy, user and password"
        case .caFile: "name a readable file of certificates in PEM form in POSTBELL_CA_FILE"
        case .unknownAuthority: "install the system's CA certificates, or name the CA in POSTBELL_CA_FILE"
        case .wrongHost, .certificate: "see that nothing between here and the provider answers in its place"
        case .certificateExpired: "set this machine's clock, or renew the certificate of the replacement host"
        case .tlsVersion, .noHTTP2, .tls: "see that no proxy takes TLS apart; the provider speaks TLS 1.2 and HTTP/2"
        default: "try again; if it stays, see that nothing between here and the provider breaks HTTP/2"
        }
    }
}
