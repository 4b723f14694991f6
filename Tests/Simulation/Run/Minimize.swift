/// Leaves out of `parts` what is not needed to keep a fault: delta debugging (Zeller and Hildebrandt 2002), by
/// stretches, each half as long as the last. `keeps` tries what is left and says whether the fault is still there; nil
/// ends it.
package func minimize<Part>(_ parts: [Part], _ keeps: ([Part]) -> Bool?) {
    var parts = parts
    var stretch = max(1, parts.count / 2)
    while true {
        var hasShrunk = false
        var start = 0
        while start < parts.count {
            let kept = Array(parts[..<start] + parts[min(start + stretch, parts.count)...])
            guard let isKept = keeps(kept) else { return }
            if isKept {
                parts = kept
                hasShrunk = true
            } else {
                start += stretch
            }
        }
        if stretch == 1 && !hasShrunk { return }
        stretch = max(1, stretch / 2)
    }
}
