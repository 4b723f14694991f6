/// `text` with everything between double quotes left out.
///
/// The server quotes the offending value in messages of class 22, and libpq quotes parts of a connection string it
/// cannot read: either may be a secret.
func withoutQuotedParts(_ text: String) -> String {
    var kept = ""
    var inside = false
    for character in text {
        if character == "\"" {
            if !inside { kept += "\"…\"" }
            inside.toggle()
        } else if !inside {
            kept.append(character)
        }
    }
    return kept
}

/// `text` on one line, without white space around it. libpq ends its messages with a line break.
func onOneLine(_ text: String) -> String {
    text.split(whereSeparator: \.isNewline).map { line in
        String(line.drop(while: \.isWhitespace))
    }.joined(separator: "; ")
}
