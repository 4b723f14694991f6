import HTTP2
import Testing

@Suite struct HTTPHeaderTests {
    @Test func aSensitiveValueIsNeverPrinted() {
        let header = HTTPHeader("authorization", "bearer hush", isSensitive: true)
        var dumped = ""
        dump([header], to: &dumped)
        for text in ["\(header)", String(reflecting: header), "\([header])", dumped] {
            #expect(text.contains("authorization") && !text.contains("hush"))
        }
        #expect("\(HTTPHeader("apns-topic", "com.example.app"))" == "apns-topic: com.example.app")
    }
}
