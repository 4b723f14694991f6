import HTTP2

/// What a setting's text must look like, and what it becomes.
package enum SettingType: Sendable {
    /// A whole number with a unit: `ms`, `s`, `m`, `h` or `d`.
    case duration(ClosedRange<Duration>)
    /// Durations with commas between them.
    case durations(ClosedRange<Duration>, count: ClosedRange<Int>)
    /// A whole number.
    case count(ClosedRange<Int>)
    /// A whole number and a percent sign.
    case percentage(ClosedRange<Int>)
    /// One of a few words.
    case choice([String])
    /// Some of a few words, with commas between them.
    case choices([String])
    /// Ten capital letters and digits, as Apple names keys and teams.
    case appleID
    /// APNs topics (bundle ids), with commas between them.
    case topics(atMost: Int)
    /// Apps as their devices name them (package names, bundle ids), with commas between them.
    case apps(atMost: Int)
    /// Names of credentials, with commas between them.
    case credentialNames(atMost: Int)
    /// Path of a file. A relative one is looked for in the directory of systemd's credentials, when there is one.
    case path
    /// `https://host` or `https://host:port`, nothing behind it.
    case endpoint
    /// An HTTP proxy, `http://host:port`, or the word `none`.
    case proxy
    /// Hosts that are reached without a proxy, with commas between them.
    case proxyExceptions
    /// A connection string of libpq, as URI or as keywords and values.
    case connectionString

    /// The name of the kind of value, for the reference page.
    package var title: String {
        switch self {
        case .duration: "duration"
        case .durations: "list of durations"
        case .count: "count"
        case .percentage: "percentage"
        case .choice: "choice"
        case .choices: "list"
        case .appleID: "text"
        case .topics, .apps, .credentialNames, .proxyExceptions: "list"
        case .path: "path"
        case .endpoint, .proxy: "URL"
        case .connectionString: "connection string"
        }
    }

    /// What is allowed, as short as a table cell wants it.
    package var range: String {
        switch self {
        case .duration(let range): Self.describe(range)
        case .durations(let range, let count): "\(count.lowerBound)–\(count.upperBound) of \(Self.describe(range))"
        case .count(let range): "\(range.lowerBound)–\(range.upperBound)"
        case .percentage(let range): "\(range.lowerBound)–\(range.upperBound)%"
        case .choice(let words), .choices(let words): words.joined(separator: ", ")
        case .appleID: "10 of A–Z, 0–9"
        case .topics(let most): "1–\(most) bundle ids"
        case .apps(let most): "1–\(most) app ids"
        case .credentialNames(let most): "1–\(most) words of a–z, 0–9"
        case .path: "a file"
        case .endpoint: "https only"
        case .proxy: "http://host:port, or none"
        case .proxyExceptions: "host names, or *"
        case .connectionString: "as libpq reads it"
        }
    }

    /// Whether the text could hold a secret when somebody mistakes the setting's purpose, and so is never repeated.
    var isPrivate: Bool {
        switch self {
        case .appleID, .topics, .apps, .path, .endpoint, .proxy, .proxyExceptions, .connectionString: true
        case .duration, .durations, .count, .percentage, .choice, .choices, .credentialNames: false
        }
    }

    /// What to write instead of a refused text; `example` is the default, if there is one.
    func remedy(example: String?) -> String {
        let such = example.map { ", such as \($0)" } ?? ""
        return switch self {
        case .duration(let range): "write a duration from \(Self.describe(range, " to "))\(such)"
        case .durations(let range, let count):
            "write \(count.lowerBound) to \(count.upperBound) durations from \(Self.describe(range, " to "))"
                + ", with commas between them\(such)"
        case .count(let range): "write a whole number from \(range.lowerBound) to \(range.upperBound)\(such)"
        case .percentage(let range):
            "write a whole number from \(range.lowerBound) to \(range.upperBound) and a percent sign\(such)"
        case .choice(let words): "write one of: \(words.joined(separator: ", "))"
        case .choices(let words): "write some of, with commas between them: \(words.joined(separator: ", "))"
        case .appleID: "write the 10 capital letters and digits that Apple's developer pages show"
        case .topics(let most): "write 1 to \(most) bundle ids with commas between them, such as com.example.app"
        case .apps(let most): "write 1 to \(most) app ids with commas between them, such as com.example.app"
        case .credentialNames(let most):
            "write 1 to \(most) words with commas between them, each of 1 to \(CredentialName.limit) small letters and"
                + " digits, such as ios,tv"
        case .path: "write the path of a file, such as /etc/postbell/apns.p8"
        case .endpoint: "write https://host or https://host:port"
        case .proxy:
            HTTPProxyError.advice + ", or set \(SettingName.proxy.rawValue) to that or to none"
        case .proxyExceptions: "write host names with commas between them"
        case .connectionString: "write postgresql://user@host:port/database, or host=… dbname=…"
        }
    }

    private static func describe(_ range: ClosedRange<Duration>, _ separator: String = "–") -> String {
        DurationText.format(range.lowerBound) + separator + DurationText.format(range.upperBound)
    }
}
