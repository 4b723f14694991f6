import CNGHTTP2
import Simulation

/// What a peer makes of requests, and what comes over it from time to time.
extension ScriptedPeer {
    // MARK: Requests

    /// Looks at a request, unless it is gone by now.
    func decide(_ record: PeerRecord) {
        let stream = record.stream
        guard open.contains(stream), !record.isDisclaimed else { return }
        if refuses(record) { return flush() }
        record.hasActed = true
        if strikes(.resetUnanswered, stream) {
            session.reset(stream, NGHTTP2_INTERNAL_ERROR)
            return flush()
        }
        if strikes(.silence, stream) { return network.note(number, "silence", Int(stream)) }
        if strikes(.interimAnswer, stream) {
            session.inform(stream)
            flush()
        }
        let isSlow = strikes(.slowAnswer, stream)
        let timeout = Int(network.plan.requestTimeout)
        let delay = isSlow ? network.draw(timeout / 4...timeout * 2) : network.draw(network.plan.answerWay)
        later(Int64(delay)) { $0.answer(record) }
    }

    private func strikes(_ fault: PipeFault, _ stream: Int32) -> Bool {
        network.dice.strikes(fault, number, Int(stream))
    }

    private func refuses(_ record: PeerRecord) -> Bool {
        let stream = record.stream
        if strikes(.refusedAndClosed, stream) {
            session.reset(stream, NGHTTP2_REFUSED_STREAM)
            session.reset(stream, NGHTTP2_STREAM_CLOSED)
        } else if strikes(.refused, stream) {
            session.reset(stream, NGHTTP2_REFUSED_STREAM)
        } else if strikes(.streamClosed, stream) {
            session.reset(stream, NGHTTP2_STREAM_CLOSED)
        } else if strikes(.refusedAfterInterim, stream) {
            session.inform(stream)
            flush()
            session.reset(stream, NGHTTP2_REFUSED_STREAM)
        } else {
            return false
        }
        network.note(number, "refuses", Int(stream), record.tag)
        return true
    }

    private func answer(_ record: PeerRecord) {
        let stream = record.stream
        guard open.contains(stream), record.answer == nil else { return }
        var answer = answerDrawn(record)
        let isBroken = strikes(.resetAfterHeaders, stream)
        if isBroken || strikes(.halfAnswer, stream) { answer.halt = answer.size / 2 }
        record.answer = answer
        network.note(number, "answers", Int(stream), answer.status)
        session.respond(stream, answer)
        flush()
        guard isBroken else { return }
        later(network.latency) { peer in
            guard peer.open.contains(stream) else { return }
            peer.session.reset(stream, NGHTTP2_CANCEL)
            peer.flush()
        }
    }

    private func answerDrawn(_ record: PeerRecord) -> PeerAnswer {
        let stream = record.stream
        func draw(_ range: ClosedRange<Int>) -> Int { network.draw(range) }
        var answer =
            if strikes(.serverError, stream) {
                PeerAnswer(tag: record.tag, status: draw(0...1) == 0 ? 500 : 503, size: draw(0...100))
            } else if strikes(.rejected, stream) {
                PeerAnswer(tag: record.tag, status: [400, 403, 410, 429][draw(0...3)], size: draw(0...300))
            } else {
                PeerAnswer(
                    tag: record.tag, status: 200, size: strikes(.largeBody, stream) ? draw(1000...60_000) : 0)
            }
        answer.hasTrailers = strikes(.trailers, stream)
        return answer
    }

    // MARK: From time to time

    /// Twice a second: what may come over a peer.
    func moment(_ count: Int) {
        later(500_000) { $0.moment(count + 1) }
        guard hasGreeted else { return }
        func strikes(_ fault: PipeFault) -> Bool { network.dice.strikes(fault, number, count) }
        if strikes(.limitIsZero) {
            announce(streams: 0)
        } else if strikes(.limitChanges) {
            let limit = network.draw(0...2) == 0 ? 1 : network.draw(1...50)
            announce(streams: limit)
        }
        if strikes(.windowChanges) {
            let window = network.draw(0...2) == 0 ? 0 : network.draw(1...100_000)
            announce(window: window)
        }
        // Also while nothing is said.
        for kind in [PipeFault.blackHole, .mutePeer, .cutOff]
        where network.dice.strikes(kind, number, count, weight: 0.1) {
            return cut(kind)
        }
        if strikes(.stopsReading) { stopReading(for: Int64(network.draw(10...8000)) * 1000) }
        if strikes(.goesAwayWithWarning) {
            session.warnOfGoAway()
            flush()
            later(Int64(network.draw(1...400)) * 1000) { $0.goAway() }
        } else if strikes(.goesAwayTwice) {
            goAway(last: highestStream)
            later(Int64(network.draw(0...400)) * 1000) { $0.goAway() }
        } else if strikes(.goesAway) {
            goAway()
        } else if strikes(.goesAwayAndCloses) {
            goAway()
            finish()
        }
    }

    private var highestStream: Int32 { log.records.keys.max() ?? 0 }

    /// Goes away at any stream that the client cannot prove wrong: one that was acted on, without a word of it, is not
    /// disowned. One whose answer has begun may be: the client knows better.
    private func goAway() {
        let silent = log.records.values.filter { $0.hasActed && $0.headersEnd == nil }
        let least = silent.map(\.stream).max() ?? 0
        let steps = Int(max(0, highestStream - least) / 2)
        goAway(last: least + 2 * Int32(network.draw(0...steps)))
    }

    private func goAway(last: Int32) {
        let words = ["", "maintenance", "{\"reason\":\"Shutdown\",\"timestamp\":1}"][network.draw(0...2)]
        let code = network.draw(0...3) == 0 ? NGHTTP2_INTERNAL_ERROR : NGHTTP2_NO_ERROR
        network.note(number, "GOAWAY", Int(last), Int(code.rawValue))
        session.goAway(last: last, code: code, words: words)
        flush()
    }
}
