/// `text` with everything from its first to its last double quote left out.
///
/// The server quotes the offending value in messages of class 22, and libpq quotes parts of a connection string it
/// cannot read: either may be a secret, and may hold quotes itself.
func withoutQuotedParts(_ text: String) -> String {
    guard let first = text.firstIndex(of: "\""), let last = text.lastIndex(of: "\"") else { return text }
    return text[..<first] + "\"…\"" + text[text.index(after: last)...]
}

/// `text` on one line, without white space around it. libpq ends its messages with a line break.
func onOneLine(_ text: String) -> String {
    text.split(whereSeparator: \.isNewline).map { line in
        String(line.drop(while: \.isWhitespace))
    }.joined(separator: "; ")
}
