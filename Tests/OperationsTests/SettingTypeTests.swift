import Testing

@testable import Operations

/// What each type of setting accepts, and the words with which it refuses the rest.
@Suite struct SettingTypeTests {
    private func refusal(_ type: SettingType, _ text: String) -> String? {
        do throws(ValueFault) {
            _ = try type.parse(text)
            return nil
        } catch {
            return error.what
        }
    }

    @Test(arguments: [
        ("50ms", Duration.milliseconds(50)), ("1s", .seconds(1)), (" 2m ", .seconds(120)), ("1h", .seconds(3600)),
        ("30d", .seconds(2_592_000)), ("0s", .zero), ("007s", .seconds(7)),
    ])
    func durations(text: String, duration: Duration) throws {
        #expect(try SettingType.duration(.zero...(.days(30))).parse(text) == .duration(duration))
    }

    @Test(arguments: [
        ("5", "is a number without a unit"), ("0", "is a number without a unit"), ("", "is not a duration"),
        ("s", "is not a duration"), ("-1s", "is not a duration"), ("1.5s", "is not a whole number with a unit"),
        ("5 s", "has an unknown unit (known are ms, s, m, h, d)"),
        ("5sec", "has an unknown unit (known are ms, s, m, h, d)"),
        ("5S", "has an unknown unit (known are ms, s, m, h, d)"), ("49ms", "is too short"), ("61s", "is too long"),
        ("99999999999d", "is too long"), ("9999999999d", "is too long"), ("٣s", "is not a duration"),
    ])
    func refusedDurations(text: String, what: String) {
        #expect(refusal(.duration(.milliseconds(50)...(.seconds(60))), text) == what)
    }

    @Test(arguments: [
        (Duration.zero, "0s"), (.milliseconds(5), "5ms"), (.milliseconds(1500), "1500ms"), (.seconds(60), "1m"),
        (.seconds(90), "90s"), (.seconds(3600), "1h"), (.seconds(86_400), "1d"), (.seconds(2_592_000), "30d"),
    ])
    func aDurationIsWrittenAsItWouldBeRead(duration: Duration, text: String) throws {
        #expect(DurationText.format(duration) == text)
        #expect(try DurationText.parse(text) == duration)
    }

    @Test func listsOfDurations() throws {
        let type = SettingType.durations(.seconds(1)...(.hours(1)), count: 1...3)
        #expect(try type.parse("30s,2m, 1h") == .durations([.seconds(30), .seconds(120), .seconds(3600)]))
        #expect(refusal(type, "30s,2") == "has an item, number 2, that is a number without a unit")
        #expect(refusal(type, "30s,,2m") == "has an item, number 2, that is not a duration")
        #expect(refusal(type, "1s,1s,1s,1s") == "has 4 items")
        #expect(refusal(type, "2h") == "has an item, number 1, that is too long")
    }

    @Test func percentages() throws {
        let type = SettingType.percentage(0...100)
        #expect(try type.parse("0%") == .count(0))
        #expect(try type.parse(" 100% ") == .count(100))
        #expect(refusal(type, "10") == "has no percent sign")
        #expect(refusal(type, "101%") == "is too large")
        #expect(refusal(type, "-1%") == "is too small")
        for text in ["%", "x%", "1.5%", "10 %", "10%%"] {
            #expect(refusal(type, text) == "is not a whole number", "\(text)")
        }
    }

    @Test func counts() throws {
        let type = SettingType.count(1...5000)
        #expect(try type.parse("1") == .count(1))
        #expect(try type.parse("5000") == .count(5000))
        for text in ["", "x", "1e3", "1_000", "10%", "+5", "1-2", "9999999999999999"] {
            #expect(refusal(type, text) == "is not a whole number", "\(text)")
        }
        #expect(refusal(type, "0") == "is too small")
        #expect(refusal(type, "-3") == "is too small")
        #expect(refusal(type, "5001") == "is too large")
    }

    @Test func choices() throws {
        #expect(try SettingType.choice(["listen", "poll"]).parse("poll") == .text("poll"))
        #expect(refusal(.choice(["listen", "poll"]), "lisen") == "has an unknown word (did you mean listen?)")
        #expect(refusal(.choice(["listen", "poll"]), "never") == "has an unknown word")
        let list = SettingType.choices(["apns", "fcm"])
        #expect(try list.parse("fcm, apns") == .texts(["fcm", "apns"]))
        #expect(refusal(list, "apsn") == "has an unknown word (did you mean apns?)")
        #expect(refusal(list, "apns,apns") == "names apns twice")
        #expect(refusal(list, "apns,") == "has an unknown word")
    }

    @Test func namesThatAppleGives() throws {
        #expect(try SettingType.appleID.parse("ABC123DEFG") == .text("ABC123DEFG"))
        for text in ["ABC123DEF", "ABC123DEFGH", "abc123defg", "ABC-23DEFG", ""] {
            #expect(refusal(.appleID, text) == "is not 10 capital letters and digits", "\(text)")
        }
        let topics = SettingType.topics(atMost: 2)
        #expect(
            try topics.parse("com.example.app, com.example.app-2") == .texts(["com.example.app", "com.example.app-2"]))
        #expect(refusal(topics, "com.example.app,a b") == "has an item, number 2, that is no bundle id")
        #expect(refusal(topics, "com.example.app,") == "has an item, number 2, that is no bundle id")
        #expect(refusal(topics, "a,a") == "names a topic twice")
        #expect(refusal(topics, "a,b,c") == "has 3 items")
    }

    @Test func paths() throws {
        #expect(try SettingType.path.parse("/etc/postbell/a b.p8") == .text("/etc/postbell/a b.p8"))
        let key = "-----BEGIN PRIVATE KEY-----\nMIGH"
        #expect(refusal(.path, key) == "holds the key or certificate itself, not a path")
        #expect(refusal(.path, "a\nb") == "is no path")
        #expect(refusal(.path, String(repeating: "x", count: 5000)) == "is no path")
    }

    @Test(arguments: [
        ("https://push.example", "push.example", 443), ("HTTPS://push.example:8443/", "push.example", 8443),
        ("https://127.0.0.1:1", "127.0.0.1", 1), ("https://[::1]:8443", "::1", 8443),
        ("https://[2001:db8::1]", "2001:db8::1", 443),
    ])
    func endpoints(text: String, host: String, port: Int) throws {
        let endpoint = try HTTPSEndpoint(text)
        #expect(endpoint.host == host)
        #expect(endpoint.port == port)
        #expect(try HTTPSEndpoint(endpoint.url) == endpoint)
    }

    @Test(arguments: [
        ("http://push.example", "is not an https:// URL"), ("push.example", "is not an https:// URL"),
        ("https://", "has no host name or address in it"), ("https://a b", "has no host name or address in it"),
        ("https://[]", "has no host name or address in it"), ("https://user:secret@host", "has a user name in it"),
        ("https://host/path", "has something behind host and port"),
        ("https://host?x", "has something behind host and port"), ("https://host:0", "has no valid port"),
        ("https://host:65536", "has no valid port"), ("https://host:", "has no valid port"),
        ("https://host:x", "has no valid port"), ("https://[::1]x", "has no valid port"),
    ])
    func refusedEndpoints(text: String, what: String) {
        #expect(refusal(.endpoint, text) == what)
    }

    @Test func connectionStrings() throws {
        for text in ["postgresql://u@h/d", "postgres:///d", "host=/run/postgresql dbname=d"] {
            #expect(try SettingType.connectionString.parse(text) == .text(text))
        }
        #expect(refusal(.connectionString, "mysql://u@h/d") == "is no connection string of PostgreSQL")
    }
}

@Suite struct NearestNameTests {
    @Test(arguments: [
        ("POSTBELL_POL", "POSTBELL_POLL"), ("POSTBELL_LAESE", "POSTBELL_LEASE"), ("postbell_batch", "POSTBELL_BATCH"),
        ("POSTBELL_SETTLEROWS", "POSTBELL_SETTLE_ROWS"),
    ])
    func slipsAreFound(typed: String, meant: String) {
        #expect(NearestName.find(typed, among: SettingName.allCases.map(\.rawValue)) == meant)
    }

    @Test func nothingIsGuessedFromNothing() {
        #expect(NearestName.find("POSTBELL_SOMETHING_ELSE", among: SettingName.allCases.map(\.rawValue)) == nil)
        #expect(NearestName.find("x", among: ["migrate"]) == nil)
        #expect(NearestName.find("anything", among: []) == nil)
    }

    @Test(arguments: [("", "abc", 3), ("abc", "abc", 0), ("ab", "ba", 1), ("abc", "adc", 1), ("kitten", "sitting", 3)])
    func slipsAreCounted(left: String, right: String, slips: Int) {
        #expect(NearestName.distance(Array(left.utf8), Array(right.utf8)) == slips)
        #expect(NearestName.distance(Array(right.utf8), Array(left.utf8)) == slips)
    }
}
