/// Numbers with their nouns.
enum CountText {
    /// `1 row`, `2 rows`.
    static func of(_ number: Int, _ noun: String) -> String {
        "\(number) \(noun)\(number == 1 ? "" : "s")"
    }

    /// `1 row waits`, `2 rows wait`.
    static func of(_ number: Int, _ noun: String, one: String, many: String) -> String {
        "\(of(number, noun)) \(number == 1 ? one : many)"
    }
}
