import Credentials
import FCM
import Operations
import Telemetry

/// The doctor's look at the FCM credentials: their files, and which project and apps they are for.
struct FCMInspector {
    private let configuration: Configuration
    private let lanes: FCMLanes

    init(_ configuration: Configuration) {
        self.configuration = configuration
        lanes = FCMLanes(configuration, log: LogWriter(level: .error, format: .logfmt, hasPriorities: false))
    }

    func run() -> [CheckItem] {
        configuration.fcm.credentials.map(item)
    }

    private func item(_ credential: Configuration.FCM.Credential) -> CheckItem {
        do throws(CommandFailure) {
            let (email, settings) = try lanes.account(of: credential)
            let facts = try facts(credential)
            let apps = credential.apps?.joined(separator: ", ") ?? "all"
            return .ok(
                .credential,
                "FCM credential \(credential.name): service account \(email) of project \(settings.project) in"
                    + " \(credential.serviceAccountFile) (\(facts.summary)), apps: \(apps)")
        } catch {
            return CheckItem.failures(.credential, error)[0]
        }
    }

    private func facts(_ credential: Configuration.FCM.Credential) throws(CommandFailure) -> FileFacts {
        do throws(KeyFileError) {
            return try credential.file.inspect()
        } catch {
            let refusal = ServiceAccountError(path: error.path, .file(error.problem))
            throw CommandFailure(refusal, place: credential.variable(.serviceAccountFile))
        }
    }
}
