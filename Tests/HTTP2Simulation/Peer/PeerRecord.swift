/// What a peer knows of one request that reached it: the witness of its side.
final class PeerRecord {
    let connection: Int
    let stream: Int32
    let tag: Int
    let seenAt: Int64
    /// The peer did what was asked for.
    var hasActed = false
    /// What it decided to answer.
    var answer: PeerAnswer?
    /// It is on the way to a decision, or past it.
    var isThoughtOf = false

    /// Where frames about it end in the bytes that the peer has written; nil for those that it has not.
    var headersEnd: Int?
    var answerEnd: Int?
    /// That it was not looked at: REFUSED_STREAM, or a GOAWAY with an earlier last stream.
    var disclaimerEnd: Int?

    init(connection: Int, stream: Int32, tag: Int, at seenAt: Int64) {
        self.connection = connection
        self.stream = stream
        self.tag = tag
        self.seenAt = seenAt
    }

    /// What it wrote says that it was not looked at, and nothing that it wrote before says otherwise.
    var isDisclaimed: Bool {
        guard let disclaimerEnd else { return false }
        return headersEnd.map { $0 > disclaimerEnd } ?? true
    }
}
