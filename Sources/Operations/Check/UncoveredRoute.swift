import OutboxCore

extension Configuration {
    /// What an operator can do about a route that no credential of this configuration covers.
    func remedy(forUncovered route: Route) -> String {
        let elsewhere = ", or start a worker that has a credential for it"
        switch route.provider {
        case "apns":
            // The app is served, but not where its devices are.
            if let near = apns.credentials.first(where: { $0.topics.contains(route.app) }) {
                return "add \(route.environment) to \(near.variable(.apnsEnvironment)) if the key is good there"
                    + elsewhere
            }
            guard let first = apns.credentials.first else { return "set APNS_KEY_FILE and its companions" + elsewhere }
            return "add the app to \(first.variable(.topic)) if the key is of its team" + elsewhere
        case "fcm":
            guard let first = fcm.credentials.first else { return "set FCM_SERVICE_ACCOUNT_FILE" + elsewhere }
            return "add the app to \(first.variable(.fcmApp)) if it is of that project" + elsewhere
        default:
            return "start a worker that has a credential for it"
        }
    }
}
