import FCM
import OutboxCore
import Support
import Testing

@Suite struct RetryAfterTests {
    private static func floor(_ status: Int, _ retryAfter: String, date: String = "") -> Duration {
        MadeResponse(status, captured: [retryAfter, date]).decoded().retryFloor
    }

    @Test(arguments: [(503, 10), (429, 60)])
    func `a longer wait in seconds counts, a shorter one does not`(status: Int, least: Int) {
        #expect(Self.floor(status, "") == .seconds(least))
        #expect(Self.floor(status, "1") == .seconds(least))
        #expect(Self.floor(status, "61") == .seconds(61))
        #expect(Self.floor(status, "0120") == .seconds(120))
    }

    @Test func `a date counts from the answer's own date, whatever this machine's clock says`() {
        let later = "Sun, 06 Nov 1994 08:51:37 GMT"
        #expect(Self.floor(503, later, date: "Sun, 06 Nov 1994 08:49:37 GMT") == .seconds(120))
    }

    @Test func `a date counts from this machine's clock where the answer has none`() {
        #expect(Self.floor(503, "Fri, 12 Dec 2025 10:02:00 GMT") == .seconds(120))
        #expect(Self.floor(503, "Fri, 12 Dec 2025 10:02:00 GMT", date: "yesterday") == .seconds(120))
    }

    @Test(arguments: [
        "-5", "+5", "1.5", "soon", "0", "99999999999", "Fri, 12 Dec 2025 09:00:00 GMT", "Fri, 32 Dec 2025 10:02:00 GMT",
        "2025-12-12T10:02:00Z", "120 s", "12\u{0}0",
    ])
    func `what is unreadable or over already counts as absent`(value: String) {
        #expect(Self.floor(503, value) == .seconds(10))
        #expect(Self.floor(429, value) == .seconds(60))
    }

    @Test(arguments: ["3601", "9999999999", "Fri, 12 Dec 2099 10:02:00 GMT"])
    func `no answer makes anybody wait longer than an hour`(value: String) {
        #expect(Self.floor(503, value) == .seconds(3600))
    }

    @Test(arguments: [400, 401, 403, 404, 413, 301]) func `only what is repeated waits`(status: Int) {
        #expect(Self.floor(status, "500") == .zero)
    }

    @Test func `the least wait after a 429 is the configured one`() {
        #expect(MadeResponse(429).decoded(throttleDelay: .seconds(1)).retryFloor == .seconds(1))
        #expect(MadeResponse(503).decoded(throttleDelay: .seconds(1)).retryFloor == .seconds(10))
    }
}
