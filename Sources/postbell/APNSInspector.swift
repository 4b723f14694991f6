import APNS
import Credentials
import Operations
import Telemetry

/// The doctor's look at the APNs credentials: their files, and what Apple calls them.
struct APNSInspector {
    private let configuration: Configuration
    private let lanes: APNSLanes

    init(_ configuration: Configuration) {
        self.configuration = configuration
        lanes = APNSLanes(configuration, log: LogWriter(level: .error, format: .logfmt, hasPriorities: false))
    }

    func run() -> [CheckItem] {
        configuration.apns.credentials.flatMap(items)
    }

    private func items(_ credential: Configuration.APNS.Credential) -> [CheckItem] {
        do throws(CommandFailure) {
            let facts = try facts(credential)
            _ = try lanes.make(credential)
            return [Self.keyItem(credential, facts), Self.nameItem(credential)]
                + credential.topics.compactMap { Self.suffixItem($0, credential) }
        } catch {
            return CheckItem.failures(.credential, error)
        }
    }

    private func facts(_ credential: Configuration.APNS.Credential) throws(CommandFailure) -> FileFacts {
        do throws(KeyFileError) {
            return try credential.key.inspect()
        } catch {
            throw CommandFailure(.file(error), place: credential.variable(.keyFile))
        }
    }

    private static func keyItem(_ credential: Configuration.APNS.Credential, _ facts: FileFacts) -> CheckItem {
        let found = "P-256 key in \(credential.keyFile) (\(facts.summary)) can sign"
        let name = credential.keyFile.split(separator: "/").last ?? ""
        // Apple hands keys out under this name.
        if name.hasPrefix("AuthKey_"), name.hasSuffix(".p8"), name != "AuthKey_\(credential.keyID).p8" {
            let variable = credential.variable(.keyID)
            return .warning(
                .credential, "\(found), but the file is named after another key than \(variable)",
                next: "set \(variable) to the id of the key in the file")
        }
        return .ok(.credential, found)
    }

    private static func nameItem(_ credential: Configuration.APNS.Credential) -> CheckItem {
        .ok(
            .credential,
            "APNs credential \(credential.name): key \(credential.keyID) of team \(credential.teamID), topics"
                + " \(credential.topics.joined(separator: ", ")), in \(credential.environments.joined(separator: ", "))"
        )
    }

    /// A topic that seems to have a push type's suffix, which a request gets from the push type.
    private static func suffixItem(_ topic: String, _ credential: Configuration.APNS.Credential) -> CheckItem? {
        let suffixes = APNSPushType.all.map(\.topicSuffix).filter { !$0.isEmpty }
        guard let suffix = suffixes.first(where: topic.hasSuffix) else { return nil }
        return .warning(
            .credential, "the topic \(topic) ends in \(suffix), which a push type adds by itself",
            next: "write the bundle id alone in \(credential.variable(.topic)), unless it does end like that")
    }
}

extension FileFacts {
    /// Mode and owner, for people.
    var summary: String {
        "mode 0\(String(mode & 0o7777, radix: 8)), owner \(owner)"
    }
}
