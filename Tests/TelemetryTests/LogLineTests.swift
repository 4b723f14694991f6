import Foundation
import Testing

@testable import Telemetry

/// Golden lines: collectors and people's searches depend on them to the byte.
@Suite struct LogLineTests {
    private let time = WallTime(seconds: 1_796_003_497, milliseconds: 42)

    private func line(
        _ format: LogFormat, hasPriorities: Bool = false, level: LogLevel = .info, _ fields: LogFields = [:]
    ) -> String {
        let encoder = LineEncoder(format: format, hasPriorities: hasPriorities)
        return String(decoding: encoder.encode(LogEvent(level, "rows claimed", fields, at: time)), as: UTF8.self)
    }

    @Test func aLineInLogfmt() {
        let text = line(.logfmt, [.rows: 12, .took: .duration(.microseconds(3214)), .provider: "apns", .cut: false])
        #expect(
            text == "ts=2026-11-30T01:51:37.042Z level=info msg=\"rows claimed\" rows=12 took_ms=3.214"
                + " provider=apns cut=false\n")
    }

    @Test func aLineInJSON() throws {
        let text = line(.json, [.rows: 12, .took: .duration(.milliseconds(1500)), .provider: "apns", .cut: false])
        #expect(
            text == #"{"ts":"2026-11-30T01:51:37.042Z","level":"info","msg":"rows claimed","rows":12,"#
                + #""took_ms":1500.000,"provider":"apns","cut":false}"# + "\n")
        _ = try JSONSerialization.jsonObject(with: Data(text.utf8))
    }

    @Test(arguments: zip(LogLevel.allCases, [7, 6, 5, 4, 3]))
    func theJournalReadsThePriorityBeforeTheLine(level: LogLevel, priority: Int) {
        let text = line(.logfmt, hasPriorities: true, level: level)
        #expect(text.hasPrefix("<\(priority)>ts=2026-11-30T01:51:37.042Z level=\(level.rawValue) "))
    }

    @Test(arguments: [
        ("plain", "plain"),
        ("a b", #""a b""#),
        ("a=b", #""a=b""#),
        (#"say "x""#, #""say \"x\"""#),
        (#"back\slash"#, #""back\\slash""#),
        ("one\ntwo\r\tthree", #""one\ntwo\r\tthree""#),
        ("bell\u{7}\u{1B}[31mred", #""bell\u0007\u001b[31mred""#),
        ("\u{1F}\u{7F}\u{80}\u{9F}", #""\u001f\u007f\u0080\u009f""#),
        ("x\u{202E}y\u{2028}z\u{2066}", #""x\u202ey\u2028z\u2066""#),
        ("grün 🔔", #""grün 🔔""#),
        ("Zoë", "Zoë"),
    ])
    func textStaysOnItsLine(value: String, written: String) throws {
        #expect(line(.logfmt, [.cause: .text(value)]).hasSuffix(" cause=\(written)\n"))

        let json = line(.json, [.cause: .text(value)])
        #expect(json.dropLast().utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F })
        let object = try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any]
        #expect(object?["cause"] as? String == value)
    }

    @Test(arguments: LogFormat.allCases) func aFieldWithoutTextIsLeftOut(format: LogFormat) {
        #expect(line(format, [.cause: "", .rows: 0]) == line(format, [.rows: 0]))
    }

    @Test(arguments: [
        (Duration.zero, "0.000"),
        (.nanoseconds(999), "0.000"),
        (.microseconds(250), "0.250"),
        (.milliseconds(-1500), "-1500.000"),
        (.seconds(86_400), "86400000.000"),
    ])
    func durationsAreMilliseconds(duration: Duration, written: String) {
        #expect(line(.logfmt, [.age: .duration(duration)]).hasSuffix(" age_ms=\(written)\n"))
    }

    @Test func longTextIsCutAtACharacter() {
        let text = line(.logfmt, [.cause: .text(String(repeating: "ü", count: 2000))])
        #expect(text.hasSuffix(" cause=" + String(repeating: "ü", count: 512) + "…\n"))
    }

    @Test(arguments: LogFormat.allCases)
    func aLineNeverExceedsWhatAPipeTakesWhole(format: LogFormat) throws {
        let long = LogValue.text(String(repeating: "\u{1}", count: 200))
        let text = line(format, [.rows: 1, .cause: long, .next: long, .state: long, .reason: long])
        #expect(text.utf8.count <= 4096)
        #expect(!text.contains("reason"))
        #expect(text.contains("state"))
        #expect(text.hasSuffix(format == .json ? #","cut":true}"# + "\n" : " cut=true\n"))
        if format == .json { _ = try JSONSerialization.jsonObject(with: Data(text.utf8)) }
    }

    @Test func keysAreNamedOnceAndDocumented() throws {
        #expect(LogKey.allCases.allSatisfy { $0.rawValue.wholeMatch(of: /[a-z]+(_[a-z]+)*/) != nil })
        let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..").standardized
        let page = try String(contentsOf: root.appending(path: "docs/logging.md"), encoding: .utf8)
        let rows = LogKey.allCases.map { key in
            let isDuration: Set<LogKey> = [.took, .delay, .age, .skew]
            return "| `\(key.rawValue)\(isDuration.contains(key) ? "_ms" : "")` | \(key.meaning) |"
        }
        let table = (["| name | value |", "| --- | --- |"] + rows).joined(separator: "\n") + "\n"
        #expect(page.contains(table), "docs/logging.md must contain this table:\n\(table)")
    }
}
