/// Lays rows out in columns that fit the terminal.
struct TableFormatter {
    /// Narrower than this no column becomes, whatever the terminal.
    private static let narrowest = 8

    private let headings: [String]
    private var rows: [[String]] = []

    init(_ headings: String...) {
        self.headings = headings
    }

    /// Adds a row with a cell for each heading.
    mutating func append(_ cells: String...) {
        precondition(cells.count == headings.count, "a row has \(headings.count) cells")
        rows.append(cells.map(QuotedText.line))
    }

    /// The table, its headings bold. On a terminal the widest columns are cut, with `…`, until a row fits.
    func text(for terminal: Terminal) -> String {
        var widths = headings.indices.map { column in
            max(headings[column].count, rows.map { $0[column].count }.max() ?? 0)
        }
        if let columns = terminal.columns {
            let gaps = 2 * (widths.count - 1)
            while widths.reduce(gaps, +) > columns, let widest = widths.max(), widest > Self.narrowest,
                let column = widths.lastIndex(of: widest)
            {
                widths[column] -= 1
            }
        }
        let heading = terminal.paint(line(headings, widths), .bold)
        return ([heading] + rows.map { line($0, widths) }).map { $0 + "\n" }.joined()
    }

    private func line(_ cells: [String], _ widths: [Int]) -> String {
        var line = ""
        for (index, (cell, width)) in zip(cells, widths).enumerated() {
            let shown = cell.count > width ? String(cell.prefix(width - 1)) + "…" : cell
            line += shown
            if index < cells.count - 1 { line += String(repeating: " ", count: width - shown.count + 2) }
        }
        return line
    }
}
