package import HTTP2

/// A setting's text, understood.
package enum SettingValue: Sendable, Equatable {
    /// Of `SettingType.duration`.
    case duration(Duration)
    /// Of `SettingType.durations`.
    case durations([Duration])
    /// Of `SettingType.count`, and of `SettingType.percentage` in percent.
    case count(Int)
    /// Of `SettingType.choice`, `appleID`, `path` and `connectionString`.
    case text(String)
    /// Of `SettingType.choices`, `topics`, `apps` and `credentialNames`.
    case texts([String])
    /// Of `SettingType.endpoint`.
    case endpoint(HTTPSEndpoint)
    /// Of `SettingType.proxy`; nil for the word `none`.
    case proxy(HTTPProxy?)
    /// Of `SettingType.proxyExceptions`.
    case proxyExceptions(ProxyExceptions)
}

/// Why a text is not a value of its type: begins with a verb whose subject is the setting, and never repeats the text.
struct ValueFault: Error, Equatable {
    let what: String

    init(_ what: String) {
        self.what = what
    }
}

extension SettingType {
    /// Understands `text`, whose surrounding white space does not count.
    func parse(_ text: String) throws(ValueFault) -> SettingValue {
        let text = text.trimmed
        switch self {
        case .duration(let range):
            return .duration(try Self.duration(text, in: range))
        case .durations(let range, let count):
            return .durations(try Self.durations(text, in: range, count: count))
        case .count(let range):
            return .count(try Self.count(text, in: range))
        case .percentage(let range):
            guard text.hasSuffix("%") else { throw ValueFault("has no percent sign") }
            return .count(try Self.count(String(text.dropLast()), in: range))
        case .choice(let words):
            guard words.contains(text) else { throw Self.unknownWord(text, among: words) }
            return .text(text)
        case .choices(let words):
            return .texts(try Self.words(text, among: words))
        case .appleID:
            guard text.utf8.count == 10, text.isMade(of: { $0.isCapital || $0.isDigit }) else {
                throw ValueFault("is not 10 capital letters and digits")
            }
            return .text(text)
        case .topics(let most):
            return .texts(try Self.topics(text, atMost: most))
        case .apps(let most):
            return .texts(try Self.apps(text, atMost: most))
        case .credentialNames(let most):
            return .texts(try Self.credentialNames(text, atMost: most))
        case .path:
            return .text(try Self.path(text))
        case .endpoint:
            return .endpoint(try HTTPSEndpoint(text))
        case .proxy:
            return .proxy(text == "none" ? nil : try Self.proxy(text))
        case .proxyExceptions:
            return .proxyExceptions(ProxyExceptions(text))
        case .connectionString:
            let isURI = text.hasPrefix("postgresql://") || text.hasPrefix("postgres://")
            guard isURI || text.contains("=") else { throw ValueFault("is no connection string of PostgreSQL") }
            return .text(text)
        }
    }

    private static func duration(_ text: String, in range: ClosedRange<Duration>) throws(ValueFault) -> Duration {
        let duration = try DurationText.parse(text)
        if duration < range.lowerBound { throw ValueFault("is too short") }
        if duration > range.upperBound { throw ValueFault("is too long") }
        return duration
    }

    private static func durations(
        _ text: String, in range: ClosedRange<Duration>, count: ClosedRange<Int>
    ) throws(ValueFault) -> [Duration] {
        var durations: [Duration] = []
        for (index, item) in items(text).enumerated() {
            do throws(ValueFault) {
                durations.append(try duration(item, in: range))
            } catch {
                throw ValueFault("has an item, number \(index + 1), that " + error.what)
            }
        }
        guard count.contains(durations.count) else { throw ValueFault("has \(durations.count) items") }
        return durations
    }

    private static func count(_ text: String, in range: ClosedRange<Int>) throws(ValueFault) -> Int {
        guard text.utf8.count <= 15, text.isMade(of: { $0.isDigit || $0 == UInt8(ascii: "-") }), let number = Int(text)
        else {
            throw ValueFault("is not a whole number")
        }
        if number < range.lowerBound { throw ValueFault("is too small") }
        if number > range.upperBound { throw ValueFault("is too large") }
        return number
    }

    private static func words(_ text: String, among known: [String]) throws(ValueFault) -> [String] {
        var words: [String] = []
        for item in items(text) {
            guard known.contains(item) else { throw unknownWord(item, among: known) }
            if words.contains(item) { throw ValueFault("names \(item) twice") }
            words.append(item)
        }
        return words
    }

    private static func topics(_ text: String, atMost most: Int) throws(ValueFault) -> [String] {
        let topics = items(text)
        for (index, topic) in topics.enumerated() {
            // Apple: letters, digits, hyphens and periods; a suffix such as .voip goes on when a push is sent.
            guard topic.isHostLike, topic.utf8.count <= 155 else {
                throw ValueFault("has an item, number \(index + 1), that is no bundle id")
            }
        }
        if Set(topics).count < topics.count { throw ValueFault("names a topic twice") }
        if topics.count > most { throw ValueFault("has \(topics.count) items") }
        return topics
    }

    private static func apps(_ text: String, atMost most: Int) throws(ValueFault) -> [String] {
        let apps = items(text)
        for (index, app) in apps.enumerated() {
            // What the registry takes for a device's app.
            guard app.isMade(of: { $0.isLetter || $0.isDigit || "._-".utf8.contains($0) }), app.utf8.count <= 255 else {
                throw ValueFault("has an item, number \(index + 1), that is no app id")
            }
        }
        if Set(apps).count < apps.count { throw ValueFault("names an app twice") }
        if apps.count > most { throw ValueFault("has \(apps.count) items") }
        return apps
    }

    private static func credentialNames(_ text: String, atMost most: Int) throws(ValueFault) -> [String] {
        let names = items(text)
        for (index, name) in names.enumerated() {
            guard CredentialName.isValid(name) else {
                throw ValueFault("has an item, number \(index + 1), that is no name of a credential")
            }
            if name == CredentialName.standard {
                throw ValueFault("names \(name), which is the credential without a name in its variables")
            }
            if names[..<index].contains(name) { throw ValueFault("names \(name) twice") }
        }
        if names.count > most { throw ValueFault("has \(names.count) items") }
        return names
    }

    private static func path(_ text: String) throws(ValueFault) -> String {
        if text.contains("-----BEGIN") { throw ValueFault("holds the key or certificate itself, not a path") }
        guard !text.unicodeScalars.contains(where: { $0.value < 0x20 }), text.utf8.count < 4096 else {
            throw ValueFault("is no path")
        }
        return text
    }

    private static func proxy(_ text: String) throws(ValueFault) -> HTTPProxy {
        do throws(HTTPProxyError) {
            return try HTTPProxy(url: text)
        } catch {
            throw ValueFault(error.complaint)
        }
    }

    private static func unknownWord(_ word: String, among known: [String]) -> ValueFault {
        if let nearest = NearestName.find(word, among: known) {
            return ValueFault("has an unknown word (did you mean \(nearest)?)")
        }
        return ValueFault("has an unknown word")
    }

    private static func items(_ text: String) -> [String] {
        text.split(separator: ",", omittingEmptySubsequences: false).map { String($0).trimmed }
    }
}

extension UInt8 {
    var isDigit: Bool { UInt8(ascii: "0")...UInt8(ascii: "9") ~= self }
    var isCapital: Bool { UInt8(ascii: "A")...UInt8(ascii: "Z") ~= self }
    var isLetter: Bool { isCapital || UInt8(ascii: "a")...UInt8(ascii: "z") ~= self }
}

extension StringProtocol {
    /// Whether it is not empty and each of its bytes is `allowed`.
    func isMade(of allowed: (UInt8) -> Bool) -> Bool {
        !isEmpty && utf8.allSatisfy(allowed)
    }

    /// Whether it is made of what host names and bundle ids are: letters, digits, hyphens and periods.
    var isHostLike: Bool {
        isMade { $0.isLetter || $0.isDigit || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: ".") }
    }

    /// Whether it can name an environment variable.
    var isVariableName: Bool {
        utf8.first?.isDigit == false && isMade { $0.isLetter || $0.isDigit || $0 == UInt8(ascii: "_") }
    }
}

extension String {
    /// Without the white space at both ends.
    var trimmed: String {
        guard let first = firstIndex(where: { !$0.isWhitespace }), let last = lastIndex(where: { !$0.isWhitespace })
        else { return "" }
        return String(self[first...last])
    }
}
