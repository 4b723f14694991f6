import OutboxCore
import Testing

@Suite struct PresentationTests {
    func text(_ range: ArraySlice<UInt8>) -> String { String(decoding: range, as: UTF8.self) }

    func render(_ template: Template, _ payload: String) -> PushContent? {
        var content = PushContent()
        let bytes = Array(payload.utf8)
        return content.render(template, text: bytes, payload: 0..<Int32(bytes.count)) ? content : nil
    }

    @Test func placesTakeValuesAndAbsentKeysLeaveNothing() throws {
        let template = Template(
            title: TemplateText("Allow {tool}?"), subtitle: TemplateText("{absent}"),
            body: TemplateText("{count} of {{many}}"))
        let content = try #require(render(template, #"{"tool":"mail \"x\" \u00e9","count":3,"other":null}"#))
        #expect(text(content.title[...]) == #"Allow mail \"x\" \u00e9?"#)
        #expect(content.subtitle.isEmpty)
        #expect(text(content.body[...]) == "3 of {many}")
        #expect(content.payload.fields.count == 3)
    }

    @Test func literalsAreEscapedForJSON() throws {
        let template = Template(title: TemplateText("a\"b\\c\nd\u{1}é"))
        let content = try #require(render(template, "{}"))
        #expect(text(content.title[...]) == #"a\"b\\c\nd\u0001é"#)
    }

    @Test(arguments: ["{", "{}x}", "a{b", "}", "a}b"])
    func unbalancedTemplatesAreRefused(source: String) {
        #expect(TemplateText(source) == nil)
    }

    @Test(arguments: [
        "", "[]", "null", "{", #"{"a"}"#, #"{"a":}"#, #"{"a":1,}"#, #"{"a":1} x"#, #"{"a":"x}"#, #"{a:1}"#,
        #"{"a":[1}"#,
    ])
    func brokenPayloadsAreAnswersNotTraps(payload: String) {
        #expect(render(Template(title: nil), payload) == nil)
    }

    @Test func nestedValuesArePassedOnAsTheyStand() throws {
        let source = #" { "apns" : {"aps":{"alert":"}{]["}}, "list": [1, {"x":"\""}], "t": true } "#
        let bytes = Array(source.utf8)
        var content = PushContent()
        let isObject = content.readRaw(text: bytes, payload: 0..<Int32(bytes.count))
        #expect(isObject)
        let values = content.payload.fields.map { text(bytes[$0.value]) }
        #expect(values == [#"{"aps":{"alert":"}{]["}}"#, #"[1, {"x":"\""}]"#, "true"])
        #expect(content.payload.field("list", in: bytes)?.isString == false)
    }

    @Test func nestingIsBounded() {
        let deep = #"{"a":"# + String(repeating: "[", count: 100) + String(repeating: "]", count: 100) + "}"
        #expect(render(Template(title: nil), deep) == nil)
    }

    @Test func arbitraryBytesNeverTrap() {
        var random = SplitMix(seed: 3)
        let alphabet = Array(#"{}[]",:\ab1 "#.utf8)
        for _ in 0..<20_000 {
            let bytes = (0..<Int(random.next() % 24)).map { _ in alphabet[Int(random.next() % UInt64(alphabet.count))] }
            var content = PushContent()
            _ = content.render(
                Template(title: TemplateText("{a}")), text: bytes, payload: 0..<Int32(bytes.count))
        }
    }

    @Test(arguments: [
        ("", 0), ("abc", 3), ("é", 2), (#"\n\"\\\/"#, 4), (#"\u0041"#, 1), (#"\u00e9"#, 2), (#"\u20AC"#, 3),
        (#"\ud83d\ude00"#, 4), (#"\ud83d"#, 3), (#"\ud83dx"#, 4), (#"\ude00"#, 3), (#"\u12"#, 3), (#"\"#, 1),
        (#"\u00zz"#, 5),
    ])
    func escapesAreCountedAsWhatTheyStandFor(content: String, count: Int) {
        #expect(JSONText.unescapedCount(Array(content.utf8)[...]) == count)
    }
}
