package import EventLoop

/// The way of a connection's bytes to the peer and back: made once, then read and written, then closed.
///
/// `SocketTransport` is the one that leaves the process. Whatever it does to the bytes, what is read and written here
/// is HTTP/2. Called once a read, a write or a turn of the loop, never once a request.
package protocol HTTP2Transport: AnyObject {
    /// Who is told of it; held weakly.
    var owner: (any HTTP2TransportOwner)? { get set }
    /// Host and port, and the address once it is known; for messages.
    var peer: String { get }
    /// What it waits for while it is being made; for messages.
    var progress: String { get }

    /// Begins to be made, by way of one of the host's `addresses`. The owner is told what comes of it, perhaps before
    /// this returns: `transportOpened` only when the peer is known to be the right one and speaks HTTP/2.
    func open(_ addresses: [SocketAddress])
    /// Reads what is there, at most `capacity` bytes.
    func read(into buffer: UnsafeMutablePointer<UInt8>, capacity: Int) -> HTTP2TransportProgress
    /// Whether bytes wait that the owner is not told of by `descriptorReady`.
    var hasPending: Bool { get }
    /// Takes as much of `buffer` as it can. What it did not take has to come again, with more behind it or not.
    func write(_ buffer: UnsafePointer<UInt8>, count: Int) -> HTTP2TransportProgress
    /// Lets the owner be told, by `descriptorReady`, of all in `interest` and of nothing else. Only once it is open.
    func watch(_ interest: Interest)
    /// Tells the peer that nothing more will come; no answer is awaited.
    func finish()
    /// Ends it, in whatever state it is. Nobody is told of anything afterwards.
    func close()
}

/// Who a transport belongs to.
package protocol HTTP2TransportOwner: ReadinessHandler {
    /// It is there: bytes can be read and written.
    func transportOpened()
    /// It could not be made.
    func transportFailed(_ error: HTTP2ConnectionError)
}

/// What a read or a write came to.
package enum HTTP2TransportProgress {
    /// This many bytes went through.
    case done(Int)
    /// It has to become ready first.
    case blocked(Interest)
    /// The peer closed the connection in order.
    case ended
    /// It is over.
    case failed(HTTP2ConnectionError)
}
