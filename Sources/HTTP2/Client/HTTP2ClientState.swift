/// What a client tells about its connections, when it changes.
package enum HTTP2ClientState: Sendable, Equatable {
    /// Requests can be sent; the peers allow `streams` of them at a time, over all connections. Told again whenever the
    /// number changes; 0 means that the peer holds us back for now.
    case up(streams: Int)
    /// A connection ends or has ended, and sending goes on over another that is open or will be opened at once.
    case replacing(HTTP2ConnectionError)
    /// There is no connection, and none will be tried before `retryAt`. `capacity` is 0 until then.
    case down(HTTP2ConnectionError, retryAt: ContinuousClock.Instant)
}

/// Counts since the client was made, and where it stands now.
package struct HTTP2Statistics: Sendable, Equatable {
    /// Nothing has happened.
    package init() {}

    /// Connections that came as far as the peer's SETTINGS.
    package var connectionsOpened = 0
    /// Attempts to connect that failed.
    package var connectionsFailed = 0
    /// GOAWAY frames received.
    package var goAways = 0
    /// Streams the peer refused, once each.
    package var refused = 0
    /// Streams the peer reset with another code.
    package var resets = 0
    /// Requests without an answer in time, sent or not.
    package var timeouts = 0
    /// PING frames sent.
    package var pings = 0
    /// Requests that went to a connection, repeats included.
    package var sent = 0
    /// Whole answers.
    package var answers = 0
    /// Requests that wait for a stream now.
    package var waiting = 0
    /// Requests in flight now.
    package var inFlight = 0
    /// Streams the open connections allow now.
    package var streamLimit = 0
    /// Open connections now.
    package var connections = 0
}
