/// What a peer answers to one request.
struct PeerAnswer {
    let tag: Int
    let status: Int
    /// Length of the body.
    let size: Int
    /// After how many bytes of the body nothing more comes; nil for an answer that is whole.
    var halt: Int?
    var hasTrailers = false
    /// A body that was written elsewhere, in place of a made-up one.
    var text: [UInt8] = []

    var hasBody: Bool { size > 0 || halt != nil || hasTrailers }

    /// Byte `place` of the body: each request has one of its own.
    func byte(_ place: Int) -> UInt8 {
        text.isEmpty ? UInt8(truncatingIfNeeded: tag &* 31 &+ place &* 7) : text[place]
    }
}

/// A body on its way.
final class PeerBody {
    let answer: PeerAnswer
    private var place = 0

    init(_ answer: PeerAnswer) {
        self.answer = answer
    }

    /// Writes the next bytes: none, and not the last ones, when it has come to a halt.
    func fill(_ buffer: UnsafeMutablePointer<UInt8>, _ capacity: Int) -> (count: Int, isLast: Bool) {
        let end = min(answer.size, answer.halt ?? answer.size)
        let count = min(capacity, end - place)
        for offset in 0..<count { buffer[offset] = answer.byte(place + offset) }
        place += count
        return (count, answer.halt == nil && place == end)
    }
}
