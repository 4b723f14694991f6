/// One connection and what FCM remembers about it.
final class FCMClient {
    let connection: ServerConnection
    /// When the connection goes away and when its limit changes.
    var fate: ConnectionChance.Fate
    /// The limit of streams that was announced last.
    var streamLimit: UInt32
    /// The newest stream whose request has arrived.
    var newestStream: Int32 = 0
    /// The last stream that a GOAWAY has left to be looked at.
    var lastStream = Int32.max

    init(_ connection: ServerConnection, streamLimit: UInt32, fate: ConnectionChance.Fate) {
        self.connection = connection
        self.streamLimit = streamLimit
        self.fate = fate
    }
}
