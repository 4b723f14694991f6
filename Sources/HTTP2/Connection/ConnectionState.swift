/// The life of a connection. `closed` can be reached from everywhere and has no exit.
enum ConnectionState: Equatable {
    /// The host's addresses are being looked up. Exits: `connecting`, `closed`.
    case resolving
    /// TCP to the addresses, of which one wins. Exits: `tunnelling`, `handshaking`, `closed`.
    case connecting
    /// The proxy has been asked for a tunnel to the host. Exits: `handshaking`, `closed`.
    case tunnelling
    /// TLS; nothing of a request leaves before the peer is verified and has agreed on `h2`. Exits: `settling`,
    /// `closed`.
    case handshaking
    /// Our preface is out, the peer's first SETTINGS is awaited. No stream is opened yet: what the peer allows is not
    /// known, and a connection that never gets further has sent nothing. Exits: `open`, `draining`, `closed`.
    case settling
    /// Streams may be opened. Exits: `draining`, `closed`.
    case open
    /// No new streams (GOAWAY, or we retire it); open ones end by themselves, then it is closed. Exit: `closed`.
    case draining
    /// Gone: the descriptor is closed and all streams are accounted for.
    case closed

    /// Whether the connection is still being made.
    var isBeingMade: Bool {
        switch self {
        case .resolving, .connecting, .tunnelling, .handshaking, .settling: true
        case .open, .draining, .closed: false
        }
    }
}
