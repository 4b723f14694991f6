import FCM
import Testing

@Suite struct FCMConfigurationTests {
    private static func fault(
        project: String = "postbell-demo", delay: Duration = .seconds(60)
    ) -> FCMConfigurationError? {
        do throws(FCMConfigurationError) {
            _ = try FCMConfiguration(project: project, throttleDelay: delay)
            return nil
        } catch {
            return error
        }
    }

    @Test func `Google's service and a minute after a 429 are the defaults`() throws {
        let configuration = try FCMConfiguration(project: "postbell-demo")
        #expect(configuration.endpoint.description == "fcm.googleapis.com:443")
        #expect(configuration.throttleDelay == .seconds(60))
        #expect(FCMEndpoint(host: "::1", port: 8443).description == "[::1]:8443")
    }

    @Test(arguments: ["postbell-demo", "a", "123456789012", "example.com:postbell"])
    func `accepts ids and numbers of projects`(project: String) {
        #expect(Self.fault(project: project) == nil)
    }

    // An empty id makes the path /v1/projects//messages:send, whose answers mislead.
    @Test(arguments: [
        "", "Postbell", "a/b", "a b", "a%2f", "a\r\nx: y", "ä", "../x", String(repeating: "a", count: 129),
    ])
    func `refuses what is no project id`(project: String) {
        #expect(Self.fault(project: project) == .project(project))
    }

    @Test func `refuses a wait after a 429 that is no time to wait`() {
        #expect(Self.fault(delay: .milliseconds(999)) == .throttleDelay(.milliseconds(999)))
        #expect(Self.fault(delay: .seconds(3601)) == .throttleDelay(.seconds(3601)))
        #expect(Self.fault(delay: .seconds(1)) == nil)
    }
}
