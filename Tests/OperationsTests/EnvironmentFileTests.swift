import Testing

@testable import Operations

/// The syntax of `EnvironmentFile=` in systemd.exec(5).
@Suite struct EnvironmentFileTests {
    private func values(_ text: String) throws -> [String: String] {
        try EnvironmentFile(path: "x.env", text: text).entries.mapValues(\.value)
    }

    @Test(arguments: [
        ("A=b", "b"), ("A=", ""), ("A= b c \t", "b c"), ("  A=b\r\n", "b"), ("A=b # no comment", "b # no comment"),
        ("A='b  c'", "b  c"), ("A=\"b c\"", "b c"), ("A='b' \"c\"", "bc"), ("A='b\nc'", "b\nc"),
        (#"A='b\n"'"#, #"b\n""#), (#"A="\"\\\$\`""#, #""\$`"#), (#"A="b\nc""#, #"b\nc"#), ("A=\"b\\\nc\"", "bc"),
        ("A=b\\\nc", "bc"), (#"A=b\ c\"#, "b c"), (#"A=b\\c"#, #"b\c"#), ("A=b\\ ", "b "),
        ("A=$HOME ${X}", "$HOME ${X}"),
        ("A=b'c'", "b'c'"), ("A==b=", "=b="), ("A=1\nA=2", "2"), ("A=grün", "grün"),
    ])
    func values(text: String, value: String) throws {
        #expect(try values(text) == ["A": value])
    }

    @Test func commentsAndBlankLines() throws {
        let text = """

            # comment with A=1
            ; another \\
            that goes on B=2
            \tC=3

            D_4='4'
            """
        let file = try EnvironmentFile(path: "x.env", text: text)
        #expect(file.entries == ["C": .init(value: "3", line: 5), "D_4": .init(value: "4", line: 7)])
    }

    @Test(arguments: [
        ("A=1\nnonsense\n", 2, "is not NAME=value"), ("A", 1, "is not NAME=value"),
        ("=1", 1, "does not begin with the name of a variable"),
        ("1A=1", 1, "does not begin with the name of a variable"),
        ("export A=1", 1, "does not begin with the name of a variable"),
        ("A=1\n\nB='x\ny", 3, "has a quote without its end"),
        ("A=\"x\\\"", 1, "has a quote without its end"),
    ])
    func whatSystemdWouldSkipIsAnError(text: String, line: Int, what: String) {
        #expect(throws: EnvironmentFileError(path: "x.env", line: line, what: what)) {
            try EnvironmentFile(path: "x.env", text: text)
        }
    }
}
