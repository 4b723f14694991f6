/// What all answers of Google's front end have in common.
enum GoogleAnswer {
    /// Status, `date`, and the headers that are given.
    static func begin(
        _ stream: ServerStream, status: Int, type: String?, _ clock: WallClock, retryAfter: RetryAfter? = nil
    ) {
        stream.answer(status: status)
        if let type { stream.addAnswerHeader("content-type") { $0 += type.utf8 } }
        stream.addAnswerHeader("date") { $0 += WallClock.httpDate(clock.seconds).utf8 }
        stream.addAnswerHeader("server") { $0 += "scaffolding on HTTPServer2".utf8 }
        if let retryAfter { stream.addAnswerHeader("retry-after") { $0 += retryAfter.text(at: clock).utf8 } }
    }

    /// A page of HTML, as the front end answers before any service has seen the request.
    static func page(_ stream: ServerStream, status: Int, _ clock: WallClock) {
        begin(stream, status: status, type: "text/html; charset=UTF-8", clock)
        stream.answerBody +=
            """
            <!DOCTYPE html>
            <html lang=en>
              <title>Error \(status)</title>
              <p><b>\(status).</b> <ins>That’s an error.</ins>
              <p>The requested URL was not served. <ins>That’s all we know.</ins>

            """.utf8
    }
}
