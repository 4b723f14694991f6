import Credentials
import Foundation
import Testing

@Suite struct JSONElementTests {
    private static func element(_ text: String) -> JSONElement? { JSONElement(Array(text.utf8)) }

    @Test func `the way to a value deep within is walked step by step`() throws {
        let text = #" {"a":{"skip":[{"a":1}],"list":[7,{"@type":"x","code":"DEEP"},"end"]},"a":{"list":[]}} "#
        let list = try #require(Self.element(text)?.member("a")?.member("list")?.elements(limit: 10))
        #expect(list.count == 3)
        #expect(list[0].member("code") == nil && list[0].string == nil && list[0].elements(limit: 10).isEmpty)
        #expect(list[1].member("code")?.string == "DEEP" && list[1].member("none") == nil)
        #expect(list[2].string == "end")
    }

    @Test func `only as many elements are looked at as the reader wants`() {
        let text = "{\"a\":[\(Array(repeating: "1", count: 100).joined(separator: ","))]}"
        #expect(Self.element(text)?.member("a")?.elements(limit: 5).count == 5)
        #expect(Self.element(text)?.member("a")?.elements(limit: 1000).count == 100)
    }

    @Test func `escapes are left as they are, and a string that has some is not taken for another`() {
        let value = Self.element(#"{"a":"x\"y","b":"\u0061"}"#)
        #expect(value?.member("a")?.string == nil && value?.member("b")?.string == nil)
        #expect(value?.member("a")?.content.map { String(decoding: $0, as: UTF8.self) } == #"x\"y"#)
        #expect(Self.element(#"{"\u0061":1}"#)?.member("a") == nil)
    }

    @Test(arguments: [
        "", "[]", "7", "{", "{}{}", "{\"a\":}", "{\"a\":1,}", "{'a':1}", "{\"a\":01}", "{\"a\":\"\n\"}", "{\"a\":nul}",
        "{\"a\":[1 2]}", "{\"a\":\"\\x\"}", "\u{FEFF}{}",
    ])
    func `what is not one JSON object is nothing`(text: String) {
        #expect(Self.element(text) == nil)
    }

    @Test func `depth is bounded`() {
        func nested(_ depth: Int) -> String {
            String(repeating: "{\"a\":", count: depth) + "1" + String(repeating: "}", count: depth)
        }
        #expect(Self.element(nested(JSONScanner.depthLimit)) != nil)
        #expect(Self.element(nested(JSONScanner.depthLimit + 1)) == nil)
        #expect(Self.element("{\"a\":" + String(repeating: "[", count: 100_000)) == nil)
    }

    /// What Foundation refuses must not be read as something by us, and nothing may crash. A failure names its seed.
    @Test(arguments: UInt64(0)..<16) func `no bytes can harm it`(seed: UInt64) {
        var state = seed &* 0x9E37_79B9_7F4A_7C15 | 1
        func next(_ bound: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33) % bound
        }
        let start = Array(#"{"error":{"status":"A\"","details":[{"@type":"b","n":[-1.5e3,true,null]}]}}"#.utf8)
        let alphabet = Array("{}[]\":,\\u0tfn-.e ".utf8)
        var readable = 0
        for _ in 0..<500 {
            var bytes = start
            for _ in 0...next(4) {
                switch next(3) {
                case 0: bytes[next(bytes.count)] = next(2) == 0 ? UInt8(next(256)) : alphabet[next(alphabet.count)]
                case 1: bytes.removeSubrange(next(bytes.count)..<bytes.count)
                default: bytes.insert(alphabet[next(alphabet.count)], at: next(bytes.count))
                }
                if bytes.isEmpty { bytes = [UInt8(ascii: "{")] }
            }
            guard let element = JSONElement(bytes) else { continue }
            readable += 1
            let error = element.member("error")
            for detail in error?.member("details")?.elements(limit: 8) ?? [] { _ = detail.member("@type")?.string }
            if bytes.allSatisfy({ $0 < 0x80 }) {
                #expect((try? JSONSerialization.jsonObject(with: Data(bytes))) != nil, "seed \(seed)")
            }
        }
        #expect(readable > 0, "seed \(seed) has made nothing that can be read")
    }
}
