extension SettingsTable {
    /// More credentials than anybody has; each is a lane with connections of its own per environment.
    private static let mostCredentials = 20

    static let apns = SettingGroup(
        title: "APNs",
        introduction: """
            A credential is a key and what it is for: `APNS_KEY_FILE`, `APNS_KEY_ID`, `APNS_TEAM_ID` and `APNS_TOPIC` \
            make the one named `default`, and without them nothing is sent to APNs. Further ones are listed in \
            `POSTBELL_APNS_CREDENTIALS`; each has the same settings with its name behind `APNS_`: for `ios,tv` they \
            are `APNS_IOS_KEY_FILE`, `APNS_TV_KEY_FILE` and so on. The key is a file; one given by a relative path is \
            looked for in `$CREDENTIALS_DIRECTORY` when systemd sets that. [Credentials](credentials.md) explains more.
            """,
        settings: [
            Setting(
                .apnsCredentials, .credentialNames(atMost: mostCredentials), absence: "the default one alone",
                "names of further credentials", reason: "several teams, or keys for one environment or app each"),
            Setting(
                .keyFile, .path, "the signing key (`.p8`) from Apple's developer pages",
                reason: "a secret by file: an environment shows up in too many places"),
            Setting(.keyID, .appleID, "the key's id", reason: "Apple finds the key by it"),
            Setting(.teamID, .appleID, "the team's id", reason: "Apple finds the key by it"),
            Setting(
                .topic, .topics(atMost: 100), "bundle ids of the apps that this key serves",
                reason: "a device's app must be one of them; only those rows are claimed"),
            Setting(
                .apnsEnvironment, .choices(["production", "sandbox"]), absence: "both",
                "the environments that this key serves",
                reason: "Apple has keys for one of them only; devices of the other are for another credential"),
            Setting(
                .tokenRefresh, .duration(.minutes(20)...(.minutes(55))), default: "40m",
                "age at which the provider token is made anew",
                reason: "Apple refuses tokens over an hour old, and new ones more often than every 20 minutes"),
            Setting(
                .serverErrorDelay, .duration(.seconds(1)...(.hours(1))), default: "15m",
                "shortest wait before a retry after a 500 or 503",
                reason: "what Apple asks for; tests and demos set seconds"),
            Setting(
                .apnsPause, .duration(.minutes(20)...(.minutes(60))), default: "40m",
                "how long a misconfigured lane pauses before it tries one push",
                reason: "long enough that probing never mints tokens too often"),
            Setting(
                .apnsEndpoint, .endpoint, absence: "Apple's hosts",
                "one host instead of both of Apple's, production and sandbox, for staging and tests",
                reason: "TLS is verified all the same; the worker says so loudly at start"),
        ])

    static let fcm = SettingGroup(
        title: "FCM",
        introduction: """
            A credential is a service account: `FCM_SERVICE_ACCOUNT_FILE` makes the one named `default`, and without \
            it nothing is sent to FCM. Further ones, for other projects, are listed in `POSTBELL_FCM_CREDENTIALS`: \
            for `tv` their settings are `FCM_TV_SERVICE_ACCOUNT_FILE` and `FCM_TV_APP`. A relative path is looked for \
            in `$CREDENTIALS_DIRECTORY` when systemd sets that.
            """,
        settings: [
            Setting(
                .fcmCredentials, .credentialNames(atMost: mostCredentials), absence: "the default one alone",
                "names of further credentials", reason: "a service account is for one project"),
            Setting(
                .serviceAccountFile, .path, "the service account's key (JSON) from Google's console",
                reason: "a secret by file; it names the project as well"),
            Setting(
                .fcmApp, .apps(atMost: 100), absence: "all",
                "apps whose devices this credential serves, as they are registered",
                reason: "needed as soon as there are two projects: a token is good in its own only"),
            Setting(
                .quotaDelay, .duration(.seconds(1)...(.hours(1))), default: "60s",
                "shortest wait after a 429 that names none",
                reason: "what Google asks for; after a 500 or 503 it is 10 s"),
            Setting(
                .fcmPause, .duration(.minutes(1)...(.hours(1))), default: "5m",
                "how long a misconfigured lane pauses before it tries one push",
                reason: "asking again costs Google little, and rights take minutes to spread"),
            Setting(
                .fcmEndpoint, .endpoint, absence: "Google's host",
                "a host instead of Google's, for staging and tests",
                reason: "TLS is verified all the same; the worker says so loudly at start"),
            Setting(
                .fcmTokenEndpoint, .endpoint, absence: "Google's host",
                "a host instead of the one where Google hands out access tokens, for staging and tests",
                reason: "TLS is verified all the same; the worker says so loudly at start"),
        ])
}
