/// What a line of `postbell check` is about, in the order in which they are looked at.
package enum CheckTopic: String, CaseIterable, Sendable {
    /// All settings, each for itself and with the others.
    case configuration
    /// A provider's credential.
    case credential
    /// A session on the database.
    case database
    /// The release of the server.
    case version
    /// Whether the server takes writes.
    case primary
    /// The revision of the schema.
    case schema
    /// What the configured role lacks.
    case rights
    /// What the configured role has and should not have.
    case excess
    /// How far our clock and the database's are apart.
    case clock
    /// A notification that comes back.
    case wake
    /// The catalog of kinds.
    case kinds
    /// The functions of the app that are asked before sending.
    case hooks
    /// Which routes the credentials cover.
    case routes
    /// How long due work has waited.
    case queue
    /// A connection to a provider.
    case endpoint

    /// What is looked at, in a few words.
    package var meaning: String {
        switch self {
        case .configuration: "every setting is understood, and they fit together"
        case .credential:
            "each credential's file (kind, owner, mode, key), key id, team id, topics, environments; project and apps"
        case .database: "a session can be opened with the worker's settings"
        case .version: "PostgreSQL is one of the supported versions"
        case .primary: "the server takes writes"
        case .schema: "the schema is the one that this program knows"
        case .rights: "the role may do all that a worker does"
        case .excess: "the role may do nothing else"
        case .clock: "our clock and the database's agree"
        case .wake: "a notification arrives on a session that listens"
        case .kinds: "there is something to enqueue; kinds whose producers write the push themselves (raw) are named"
        case .hooks: "the function of each hook may be asked"
        case .routes: "each route of the database has a credential here or a worker elsewhere"
        case .queue: "no due row waits long"
        case .endpoint: "name, TCP, TLS and HTTP/2 up to the provider's settings; no request is sent"
        }
    }

    /// Whether it can be looked at without a connection to anything.
    var isOffline: Bool { self == .configuration || self == .credential }
}
