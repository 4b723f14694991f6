/// Variables read from a file in the format of systemd's `EnvironmentFile=` (`systemd.exec(5)`), so that one file
/// serves a unit and a shell alike.
///
/// `NAME=value` per line; lines that begin with `#` or `;` are comments; single quotes take everything literally,
/// double quotes know `\"`, `\\`, `\$` and `` \` ``; a backslash at the end of a line joins the next one; nothing is
/// expanded.
/// Where systemd skips what it cannot read, this is an error: a line without `=`, a quote without its end.
package struct EnvironmentFile: Sendable, Equatable {
    /// A variable and where it stands.
    package struct Entry: Sendable, Equatable {
        /// The value, quotes and escapes resolved.
        package let value: String
        /// The line of its name, from 1.
        package let line: Int
    }

    /// The path, as it was given.
    package let path: String
    /// By name; of two with one name the last counts, as with systemd.
    package let entries: [String: Entry]

    /// Understands `text`, the content of the file at `path`.
    package init(path: String, text: String) throws(EnvironmentFileError) {
        self.path = path
        var parser = EnvironmentFileParser(text: text)
        var entries: [String: Entry] = [:]
        do throws(EnvironmentFileParser.Fault) {
            while let (name, entry) = try parser.next() { entries[name] = entry }
        } catch {
            throw EnvironmentFileError(path: path, line: error.line, what: error.what)
        }
        self.entries = entries
    }
}

/// An environment file that cannot be read or understood.
package struct EnvironmentFileError: Error, Equatable {
    /// The path, as it was given.
    package let path: String
    /// The line at fault, from 1; nil when the whole file is.
    package let line: Int?
    /// What is wrong, without any value.
    package let what: String

    /// An error with `what` is wrong.
    package init(path: String, line: Int?, what: String) {
        self.path = path
        self.line = line
        self.what = what
    }
}

/// Reads one assignment after the other.
struct EnvironmentFileParser {
    struct Fault: Error {
        let line: Int
        let what: String
    }

    private let characters: [Unicode.Scalar]
    private var position = 0
    private var line = 1

    init(text: String) {
        characters = Array(text.unicodeScalars)
    }

    /// The next assignment, or nil at the end.
    mutating func next() throws(Fault) -> (String, EnvironmentFile.Entry)? {
        while let character = peek() {
            if character == "#" || character == ";" {
                skipComment()
            } else if isSpace(character) || character == "\n" {
                advance()
            } else {
                let start = line
                let name = try name()
                return (name, EnvironmentFile.Entry(value: try value(), line: start))
            }
        }
        return nil
    }

    /// A comment ends with its line, unless that ends with a backslash.
    private mutating func skipComment() {
        while let character = advance(), character != "\n" {
            if character == "\\" { advance() }
        }
    }

    private mutating func name() throws(Fault) -> String {
        let start = line
        var name = ""
        while let character = peek(), character != "=", character != "\n" {
            name.unicodeScalars.append(character)
            advance()
        }
        guard advance() == "=" else { throw Fault(line: start, what: "is not NAME=value") }
        name = name.trimmed
        guard name.isVariableName else {
            throw Fault(line: start, what: "does not begin with the name of a variable")
        }
        return name
    }

    private mutating func value() throws(Fault) -> String {
        var value = ""
        while let character = advance(), character != "\n" {
            switch character {
            case _ where isSpace(character): continue
            case "'", "\"": try quoted(by: character, into: &value)
            default:
                position -= 1
                plain(into: &value)
                return value
            }
        }
        return value
    }

    /// The rest of the line, literally but for backslashes; white space at its end does not count.
    private mutating func plain(into value: inout String) {
        var kept = value.unicodeScalars.count
        while let character = advance(), character != "\n" {
            if character == "\\" {
                guard let escaped = advance(), escaped != "\n" else { continue }
                value.unicodeScalars.append(escaped)
                kept = value.unicodeScalars.count
            } else {
                value.unicodeScalars.append(character)
                if !isSpace(character) { kept = value.unicodeScalars.count }
            }
        }
        value = String(String.UnicodeScalarView(value.unicodeScalars.prefix(kept)))
    }

    private mutating func quoted(by quote: Unicode.Scalar, into value: inout String) throws(Fault) {
        let start = line
        while let character = advance() {
            if character == quote { return }
            guard character == "\\", quote == "\"", let escaped = peek() else {
                value.unicodeScalars.append(character)
                continue
            }
            // As in a shell: before anything else a backslash is just a backslash.
            if escaped == "\n" || "\"\\`$".unicodeScalars.contains(escaped) {
                advance()
                if escaped != "\n" { value.unicodeScalars.append(escaped) }
            } else {
                value.unicodeScalars.append(character)
            }
        }
        throw Fault(line: start, what: "has a quote without its end")
    }

    private func isSpace(_ character: Unicode.Scalar) -> Bool {
        character == " " || character == "\t" || character == "\r"
    }

    private func peek() -> Unicode.Scalar? {
        position < characters.count ? characters[position] : nil
    }

    @discardableResult
    private mutating func advance() -> Unicode.Scalar? {
        guard let character = peek() else { return nil }
        position += 1
        if character == "\n" { line += 1 }
        return character
    }
}
