/// The life of a connection. `closed` can be reached from everywhere and has no exit.
enum ConnectionState: Equatable {
    /// The host's addresses are being looked up. Exits: `connecting`, `closed`.
    case resolving
    /// The way to the peer is being made; nothing of a request leaves before the peer is verified and has agreed on
    /// `h2`. Exits: `settling`, `closed`.
    case connecting
    /// Our preface is out, the peer's first SETTINGS is awaited. No stream is opened yet: what the peer allows is not
    /// known, and a connection that never gets further has sent nothing. Exits: `open`, `draining`, `closed`.
    case settling
    /// Streams may be opened. Exits: `draining`, `closed`.
    case open
    /// No new streams (GOAWAY, or we retire it); open ones end by themselves, then it is closed. Exit: `closed`.
    case draining
    /// Gone: the transport is closed and all streams are accounted for.
    case closed

    /// Whether the connection is still being made.
    var isBeingMade: Bool {
        switch self {
        case .resolving, .connecting, .settling: true
        case .open, .draining, .closed: false
        }
    }
}
