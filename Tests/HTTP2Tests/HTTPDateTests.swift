import HTTP2
import Testing

@Suite struct HTTPDateTests {
    @Test(
        arguments: [
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0), ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
            ("Tue, 29 Feb 2000 23:59:59 GMT", 951_868_799), ("Wed, 01 Mar 2000 00:00:00 GMT", 951_868_800),
            ("Mon, 30 Nov 2026 08:00:00 GMT", 1_796_025_600), ("Mon, 01 Mar 2100 00:00:00 GMT", 4_107_542_400),
        ] as [(String, Int64)])
    func readsTheDateOfToday(text: String, seconds: Int64) {
        #expect(HTTPDate.seconds(text.utf8) == seconds)
    }

    @Test(arguments: [
        "", "120", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Non 1994 08:49:37 GMT", "Sun, 00 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:49:37 GMT",
        "Sun, 06 Nov 1994 08:60:37 GMT", "Sun, 06 Nov 19x4 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT ",
    ])
    func readsNothingElse(text: String) {
        #expect(HTTPDate.seconds(text.utf8) == nil)
    }
}
