import APNS
import Testing

@Suite struct APNSConfigurationTests {
    private static func fault(
        keyID: String = "ABC123DEFG", teamID: String = "DEF123GHIJ", topics: [String] = ["com.example.app"],
        delay: Duration = .seconds(900)
    ) -> APNSConfigurationError? {
        do throws(APNSConfigurationError) {
            _ = try APNSConfiguration(
                environment: .production, keyID: keyID, teamID: teamID, topics: topics, serverErrorDelay: delay)
            return nil
        } catch {
            return error
        }
    }

    @Test func `Apple's two services have their hosts`() throws {
        let production = try APNSConfiguration(
            environment: .production, keyID: "ABC123DEFG", teamID: "DEF123GHIJ", topics: ["com.example.app"])
        #expect(production.endpoint == APNSEndpoint(host: "api.push.apple.com", port: 443))
        #expect(APNSEnvironment.sandbox.endpoint == APNSEndpoint(host: "api.sandbox.push.apple.com", port: 443))
        #expect(production.serverErrorDelay == .seconds(900))
    }

    @Test func `what cannot be right is refused with the value that is wrong`() {
        #expect(Self.fault() == nil)
        #expect(Self.fault(keyID: "abc123defg") == .keyID("abc123defg"))
        #expect(Self.fault(keyID: "ABC123DEF") == .keyID("ABC123DEF"))
        #expect(Self.fault(teamID: "") == .teamID(""))
        #expect(Self.fault(teamID: "DEF123GHI\"") == .teamID("DEF123GHI\""))
        #expect(Self.fault(topics: []) == .noTopic)
        #expect(Self.fault(topics: ["com.example.app", "com example"]) == .topic("com example"))
        #expect(Self.fault(topics: ["com.example\r\nx: y"]) == .topic("com.example\r\nx: y"))
        #expect(Self.fault(delay: .milliseconds(999)) == .serverErrorDelay(.milliseconds(999)))
        #expect(Self.fault(delay: .seconds(3601)) == .serverErrorDelay(.seconds(3601)))
        #expect(Self.fault(delay: .seconds(1)) == nil)
    }

    @Test(arguments: [
        ("https://api.push.apple.com", "api.push.apple.com:443"), ("https://localhost:2197", "localhost:2197"),
        ("https://localhost:2197/", "localhost:2197"), ("https://[::1]:8443", "[::1]:8443"),
        ("https://[::1]", "[::1]:443"),
    ])
    func `reads endpoints`(url: String, expected: String) {
        #expect(APNSEndpoint(url: url)?.description == expected)
    }

    @Test(arguments: [
        "", "http://localhost", "localhost:1", "https://", "https://:1", "https://host:0", "https://host:65536",
        "https://host:x", "https://host/path", "https://user@host", "https://[::1", "https://[::1]x", "https://a b",
    ])
    func `refuses what is no endpoint`(url: String) {
        #expect(APNSEndpoint(url: url) == nil)
    }
}
