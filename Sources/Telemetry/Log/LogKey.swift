/// Every name a log line can carry, and what it means. Closed, so that lines can be searched by name, and so that there
/// is no name for a token, a key, a payload value or a person.
package enum LogKey: String, CaseIterable, Sendable {
    // Where
    case provider
    case environment
    case app
    case topic
    case lane
    case route
    case worker
    case lease
    case kind
    case notification
    case device
    case claimant
    case hook
    case host
    case port
    case connection
    case stream

    // What
    case operation
    case outcome
    case reason
    case status
    case state
    case signal
    case setting
    case file
    case database
    case version
    case revision
    case process

    // Fault
    case code
    case sqlstate
    case cause
    case next

    // How many
    case rows
    case targets
    case attempts
    case count
    case limit
    case pending
    case inFlight = "in_flight"
    case late
    case fenced
    case released
    case adopted
    case recovered
    case dropped

    // How long
    case took
    case delay
    case age
    case skew
    case created

    // The line itself
    case cut

    /// What the value of this name is, in a few words, with its unit.
    package var meaning: String {
        switch self {
        case .provider: "which provider: `apns`"
        case .environment: "the device's environment at the provider: `production`, `sandbox`"
        case .app: "the application the device registered for"
        case .topic: "the APNs topic"
        case .lane: "provider, environment and credential of a lane"
        case .route: "provider, environment and app of a route"
        case .worker: "this process's id in the table `workers`"
        case .lease: "id of a lease"
        case .kind: "kind of notification"
        case .notification: "id of a notification"
        case .device: "fingerprint of a device's token, never the token"
        case .claimant: "the worker that has a notification on lease"
        case .hook: "which hook of a kind: `stale` or `access`"
        case .host: "name or address of a peer"
        case .port: "port of a peer"
        case .connection: "number of a connection within this process"
        case .stream: "HTTP/2 stream id"
        case .operation: "what was being done"
        case .outcome: "outcome of an attempt, as in the ledger"
        case .reason: "the provider's or the ledger's reason"
        case .status: "HTTP status"
        case .state: "the state entered"
        case .signal: "name of a signal"
        case .setting: "name of a setting"
        case .file: "path of a file"
        case .database: "name of a database"
        case .version: "version of this program or of a peer"
        case .revision: "revision of the schema"
        case .process: "id of this process"
        case .code: "code of a fault"
        case .sqlstate: "PostgreSQL's error code"
        case .cause: "the fault beneath, in its own words"
        case .next: "what happens next, or what to do"
        case .rows: "rows of a batch"
        case .targets: "devices of a batch"
        case .attempts: "attempts so far"
        case .count: "how often"
        case .limit: "the bound that applies"
        case .pending: "how many wait"
        case .inFlight: "requests without an answer yet"
        case .late: "results that came after their lease was gone"
        case .fenced: "results refused because their lease was gone"
        case .released: "rows given back unsent"
        case .adopted: "rows taken over from a lost claim of ours"
        case .recovered: "rows taken over from lapsed leases"
        case .dropped: "log lines that could not be written"
        case .took: "how long it took"
        case .delay: "how long until the next try"
        case .age: "how old"
        case .skew: "difference of two clocks"
        case .created: "when a notification was enqueued, UTC"
        case .cut: "`true`: the line was too long, fields are missing"
        }
    }
}
