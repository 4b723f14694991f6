import APNS
import Credentials
import DispatchRuntime
import EventLoop
import HTTP2
import Operations
import OutboxCore
import Telemetry

/// Answers what `postbell check` asks about APNs, with the lanes that a worker would have.
struct APNSInspector: ProviderInspector {
    func credentials(of configuration: Configuration) -> [CheckItem] {
        guard let credential = configuration.apns.credential, let lanes = lanes(configuration) else {
            return [
                .warning(
                    .credential, "no provider is configured: a worker claims nothing",
                    next: "set APNS_KEY_FILE, APNS_KEY_ID, APNS_TEAM_ID and APNS_TOPIC")
            ]
        }
        do throws(CommandFailure) {
            let facts = try keyFile(lanes)
            _ = try lanes.make()
            return [Self.keyItem(credential, facts), Self.nameItem(credential)]
        } catch {
            return CheckItem.failures(.credential, error)
        }
    }

    func endpoints(of configuration: Configuration, on loop: EventLoop) async -> [CheckItem] {
        guard let lanes = lanes(configuration), let configurations = try? lanes.make() else { return [] }
        var items: [CheckItem] = []
        var seen: [String: [String]] = [:]
        var transports: [(name: String, transport: HTTP2ClientConfiguration)] = []
        for lane in configurations {
            let name = "\(lane.transport.host):\(lane.transport.port)"
            if seen[name] == nil { transports.append((name, lane.transport)) }
            seen[name, default: []].append(lane.description.name)
        }
        for (name, transport) in transports {
            let uses = (seen[name] ?? []).joined(separator: ", ")
            items.append(await Self.endpoint("\(name) for \(uses)", transport, on: loop))
        }
        return items
    }

    func covers(_ route: Route, in configuration: Configuration) -> Bool {
        lanes(configuration)?.covers(route) ?? false
    }

    private func lanes(_ configuration: Configuration) -> APNSLanes? {
        APNSLanes(configuration, log: LogWriter(level: .error, format: .logfmt, hasPriorities: false))
    }

    // MARK: Credentials

    private func keyFile(_ lanes: APNSLanes) throws(CommandFailure) -> FileFacts {
        do throws(KeyFileError) {
            return try lanes.keyFile.inspect()
        } catch {
            throw CommandFailure(.file(error))
        }
    }

    private static func keyItem(_ credential: Configuration.APNS.Credential, _ facts: FileFacts) -> CheckItem {
        let mode = "0" + String(facts.mode & 0o7777, radix: 8)
        let found = "P-256 key in \(credential.keyFile) (mode \(mode), owner \(facts.owner)) can sign"
        let name = credential.keyFile.split(separator: "/").last ?? ""
        // Apple hands keys out under this name.
        if name.hasPrefix("AuthKey_"), name.hasSuffix(".p8"), name != "AuthKey_\(credential.keyID).p8" {
            return .warning(
                .credential, "\(found), but the file is named after another key than APNS_KEY_ID",
                next: "set APNS_KEY_ID to the id of the key in the file")
        }
        return .ok(.credential, found)
    }

    private static func nameItem(_ credential: Configuration.APNS.Credential) -> CheckItem {
        .ok(
            .credential,
            "key \(credential.keyID) of team \(credential.teamID), topics \(credential.topics.joined(separator: ", "))")
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
        case .caFile: "name a readable file of certificates in PEM form in POSTBELL_CA_FILE"
        case .unknownAuthority: "install the system's CA certificates, or name the CA in POSTBELL_CA_FILE"
        case .wrongHost, .certificate: "see that nothing between here and the provider answers in its place"
        case .certificateExpired: "set this machine's clock, or renew the certificate of the replacement host"
        case .tlsVersion, .noHTTP2, .tls: "see that no proxy takes TLS apart; the provider speaks TLS 1.2 and HTTP/2"
        default: "try again; if it stays, see that nothing between here and the provider breaks HTTP/2"
        }
    }
}
