/// What a stand-in service does with the requests of its connections. All calls come on the loop.
protocol RequestHandler: AnyObject {
    /// TLS is up and HTTP/2 has begun; nothing was sent yet but the first SETTINGS.
    func connectionOpened(_ connection: ServerConnection)
    /// A whole request is there. Answer it now, later, or never; the stream is valid until `streamClosed`.
    func requestArrived(_ stream: ServerStream, on connection: ServerConnection)
    /// Bytes go out next: what must be on record before an answer can be seen is written now.
    func connectionWillSend()
    /// The client broke HTTP/2, for example by one stream more than allowed.
    func clientBrokeProtocol(on connection: ServerConnection)
    /// The connection is gone.
    func connectionClosed(_ connection: ServerConnection)
}

/// The SETTINGS that a server begins with.
struct ServerSettings {
    /// SETTINGS_MAX_CONCURRENT_STREAMS.
    var concurrentStreams: UInt32
    /// SETTINGS_INITIAL_WINDOW_SIZE, in bytes.
    var initialWindow: UInt32 = 65_535
    /// SETTINGS_MAX_HEADER_LIST_SIZE, in bytes; 8,000 as observed at APNs.
    var headerListSize: UInt32 = 8_000
}
