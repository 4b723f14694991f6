/// The reference page of all settings, docs/configuration.md, made from the table.
package enum ConfigurationPage {
    /// The page in Markdown.
    package static var markdown: String {
        ([introduction] + SettingsTable.groups.map(section) + [rules, files]).joined(separator: "\n\n") + "\n"
    }

    private static let introduction = """
        # Configuration

        Postbell is configured by environment variables. `postbell config` shows the effective value of each and where \
        it comes from. This page is made from the table in the program, and a test holds it to that.

        - A duration is a whole number and a unit: `250ms`, `30s`, `2m`, `1h`, `30d`. A number without a unit \
        is refused.
        - A variable that is empty counts as not set. An unknown name that begins with `POSTBELL_` is an error.
        - An option goes before the environment, and the environment before the file of `--env-file`.
        - Everything that is wrong is said at once, one line each, and the command ends with status 3.
        """

    private static func section(_ group: SettingGroup) -> String {
        let rows = group.settings.map { setting in
            let standard = setting.standard.map { "`\($0)`" } ?? setting.absence
            let commands = setting.commands.map(\.rawValue).joined(separator: ", ")
            return "| `\(setting.name.rawValue)` | \(setting.type.title) | \(standard) | \(setting.type.range)"
                + " | \(setting.meaning) | \(setting.reason) | \(commands) |"
        }
        let table = [
            "| name | type | default | range | meaning | why | read by |",
            "| --- | --- | --- | --- | --- | --- | --- |",
        ]
        return "## \(group.title)\n\n\(group.introduction)\n\n" + (table + rows).joined(separator: "\n")
    }

    private static let rules = """
        ## What must fit together

        - `POSTBELL_LEASE` is longer than `POSTBELL_REQUEST_TIMEOUT` + `POSTBELL_SETTLE_DELAY` + \
        \(DurationText.format(ConfigurationRules.settleStatement)), so that no request outlives its lease.
        - `POSTBELL_STOP_TIMEOUT` is at least `POSTBELL_REQUEST_TIMEOUT`, so that a stop cuts off no request.
        - `APNS_KEY_FILE`, `APNS_KEY_ID`, `APNS_TEAM_ID` and `APNS_TOPIC` are all set or all unset, for each credential.
        - A credential that is listed has its settings, and one that has settings is listed.
        - A topic in one environment is of one APNs credential, and an app of one FCM credential.
        - APNs credentials with one key id and team name one file.
        - A provider that `POSTBELL_PROVIDERS` names has a credential.
        """

    private static let files = """
        ## Environment files

        `--env-file FILE` reads a file in the format of systemd's `EnvironmentFile=`: `NAME=value` per line, comments \
        behind `#` or `;` at the beginning of a line, single quotes for literal text, double quotes with \
        `\\"`, `\\\\`, `` \\` `` and `\\$`, a backslash at the end of a line to go on in the next one. Nothing is \
        expanded. Where systemd skips a line that it cannot read, Postbell refuses the file and names the line.

        ```
        # /etc/postbell/apns.env
        DATABASE_URL=postgresql://postbell_dispatch@db.internal/app?sslmode=verify-full
        APNS_KEY_FILE=apns.p8
        APNS_KEY_ID=ABC123DEFG
        APNS_TEAM_ID=DEF123GHIJ
        APNS_TOPIC=com.example.app
        ```
        """
}
