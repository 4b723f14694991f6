import Foundation
import Testing

@testable import Operations

@Suite struct TerminalTests {
    private func table(columns: Int?) -> String {
        var table = TableFormatter("NAME", "VALUE")
        table.append("a", "short")
        table.append("longer name", "a value that goes on and on\nand on")
        return table.text(for: Terminal(descriptor: -1, columns: columns, hasColour: false))
    }

    @Test func aTableInAFileIsAsWideAsItsContent() {
        #expect(
            table(columns: nil) == #"""
                NAME         VALUE
                a            short
                longer name  a value that goes on and on\u{a}and on

                """#)
    }

    @Test func aTableFitsItsTerminal() {
        #expect(
            table(columns: 30) == """
                NAME         VALUE
                a            short
                longer name  a value that goe…

                """)
        for columns in 20...60 {
            #expect(table(columns: columns).split(separator: "\n").allSatisfy { $0.count <= columns })
        }
        // No column becomes so narrow that it says nothing.
        #expect(table(columns: 1).contains("longer …"))
    }

    @Test func colourIsForTerminalsOnly() {
        #expect(Terminal(descriptor: -1, columns: 80, hasColour: true).paint("x", .red) == "\u{1B}[31mx\u{1B}[0m")
        #expect(Terminal(descriptor: -1, columns: 80, hasColour: false).paint("x", .red) == "x")
        #expect(Terminal.hasColour(isTerminal: true, [:]))
        #expect(Terminal.hasColour(isTerminal: true, ["NO_COLOR": "", "TERM": "xterm"]))
        #expect(!Terminal.hasColour(isTerminal: true, ["NO_COLOR": "1"]))
        #expect(!Terminal.hasColour(isTerminal: true, ["TERM": "dumb"]))
        #expect(!Terminal.hasColour(isTerminal: false, [:]))
    }

    @Test func aMomentIsAbsoluteAndRelative() {
        let text = "2026-11-30 02:17:05+00"
        let moment = 1_796_005_025
        #expect(TimeText.withDistance(text, now: moment) == "\(text) (just now)")
        #expect(TimeText.withDistance(text, now: moment + 59) == "\(text) (59 s ago)")
        #expect(TimeText.withDistance(text, now: moment - 61) == "\(text) (in 1 min)")
        #expect(TimeText.withDistance("infinity", now: moment) == "infinity")
        #expect(TimeText.withDistance("2026-11-30 02:17:05+01", now: moment) == "2026-11-30 02:17:05+01")
    }

    @Test(arguments: [
        (1, "1 s ago"), (3599, "59 min ago"), (3600, "1 h ago"), (7530, "2 h 5 min ago"), (86_400, "1 d ago"),
        (-90_000, "in 1 d 1 h"),
    ])
    func distances(seconds: Int, text: String) {
        #expect(TimeText.distance(seconds) == text)
    }

    @Test func json() throws {
        let value = JSONText.object([
            ("text", .string("a\"b\n\u{7F}")), ("none", .string(nil)),
            ("list", .array([.int(-1), .bool(true), .null])),
        ])
        #expect(value.text == #"{"text":"a\"b\n\u007f","none":null,"list":[-1,true,null]}"#)
        _ = try JSONSerialization.jsonObject(with: Data(value.text.utf8))
    }

    @Test func helpFitsEightyColumnsAndHasAnExample() {
        for command in CommandLineTool.commands {
            let text = HelpText.command(command)
            #expect(text.split(separator: "\n").allSatisfy { $0.count <= 80 }, "\(command.name)")
            #expect(text.contains("Example:\n  "))
            #expect(command.options.allSatisfy { text.contains($0.name) })
            #expect(HelpText.overview(CommandLineTool.commands).contains("  \(command.name.rawValue) "))
            for setting in SettingsTable.groups.flatMap(\.settings) {
                #expect(text.contains(setting.name.rawValue) == setting.commands.contains(command.name))
            }
        }
        #expect(HelpText.overview(CommandLineTool.commands).split(separator: "\n").allSatisfy { $0.count <= 80 })
    }
}
