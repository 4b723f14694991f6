/// The header `date` of answers, written anew once a second: answers are many.
struct DateHeader {
    private var second: Int64 = .min
    private var text: [UInt8] = []

    /// Adds the header to an answer given at `clock`.
    mutating func add(to stream: ServerStream, at clock: WallClock) {
        let now = clock.seconds
        if now != second {
            second = now
            text = Array(WallClock.httpDate(now).utf8)
        }
        stream.addAnswerHeader("date") { $0 += text }
    }
}
