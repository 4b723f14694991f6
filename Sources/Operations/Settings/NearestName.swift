/// Finds what was probably meant by a name that does not exist.
enum NearestName {
    /// The known name with the fewest typing slips between it and `name`, if those are few (3, or a third).
    static func find(_ name: String, among known: [String]) -> String? {
        let typed = Array(name.lowercased().utf8.prefix(64))
        let limit = max(1, min(3, typed.count / 3))
        let ranked = known.map { (name: $0, slips: distance(typed, Array($0.lowercased().utf8))) }
        guard let best = ranked.min(by: { $0.slips < $1.slips }), best.slips <= limit else { return nil }
        return best.name
    }

    /// How many letters must be put in, left out, replaced or swapped with their neighbour to turn one into the other
    /// (optimal string alignment).
    static func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
        var before: [Int] = []
        var last = Array(0...right.count)
        for row in 0..<left.count {
            var next = [row + 1]
            for column in 0..<right.count {
                let replaced = last[column] + (left[row] == right[column] ? 0 : 1)
                var least = min(replaced, last[column + 1] + 1, next[column] + 1)
                if row > 0, column > 0, left[row] == right[column - 1], left[row - 1] == right[column] {
                    least = min(least, before[column - 1] + 1)
                }
                next.append(least)
            }
            before = last
            last = next
        }
        return last[right.count]
    }
}
