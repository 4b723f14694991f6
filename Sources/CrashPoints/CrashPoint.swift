#if CRASH_POINTS
    /// A named step of the worker at which a test may have it die, pause or be told to stop (`CrashOrder`).
    ///
    /// A build without the condition `CRASH_POINTS`, such as a release, has neither the steps nor the calls. Each step
    /// has one call, at the place that `docs/faults.md` names. `unsent` is before a statement is handed over; `sent` is
    /// when the server has carried it out and nobody has read its answer; `answered` is when the answer was read and
    /// nobody has looked at it.
    package enum CrashPoint: String, CaseIterable, Sendable {
        /// Work was found, and a claim is about to be sent.
        case claimUnsent = "claim-unsent"
        /// The lease is committed and this worker does not know it.
        case claimSent = "claim-sent"
        /// The claim's answer was read and leads to nothing yet.
        case claimAnswered = "claim-answered"
        /// Rows that waited too long are being looked at again.
        case recheckSent = "recheck-sent"
        /// What they came to is known to nobody yet.
        case recheckAnswered = "recheck-answered"
        /// A connection to the provider is being made.
        case connecting = "connecting"
        /// It stands, and nothing was sent on it.
        case connected = "connected"
        /// Requests were given to the client; no stream is open for them.
        case requestHandedOver = "request-handed-over"
        /// A request's frames are made, and not written.
        case requestFramed = "request-framed"
        /// The kernel has bytes of open requests.
        case requestWritten = "request-written"
        /// Bytes came while requests are open, and were not looked at.
        case answerReceived = "answer-received"
        /// Answers were judged; nothing of that is in the database.
        case answerJudged = "answer-judged"
        /// A settle is about to be sent.
        case settleUnsent = "settle-unsent"
        /// The settle is committed and this worker does not know it.
        case settleSent = "settle-sent"
        /// The settle's answer was read and leads to nothing yet.
        case settleAnswered = "settle-answered"
        /// Devices are about to be told of the outcomes that are settled.
        case effectsUnsent = "effects-unsent"
        /// Devices were told, and this worker does not know it.
        case effectsSent = "effects-sent"
        /// The same, and the answer was read.
        case effectsAnswered = "effects-answered"
        /// Leases live on, and this worker does not know it.
        case renewSent = "renew-sent"
        /// The same, and the answer was read.
        case renewAnswered = "renew-answered"
        /// Lapsed leases of others were looked for.
        case recoverSent = "recover-sent"
        /// Some were found, and their rows are queued again.
        case recovered = "recovered"
        /// A lease whose claim was never answered was given back.
        case adoptSent = "adopt-sent"
        /// The worker has told that it lives.
        case heartbeatSent = "heartbeat-sent"
        /// It was told to stop, and begins to.
        case draining = "draining"
        /// The stop timeout is over, or it was told twice: open requests are about to be reset.
        case aborting = "aborting"
        /// All that it held is settled or given back, and it has not signed off.
        case drained = "drained"
        /// Its sessions are closed, and the process is about to exit.
        case ended = "ended"
    }
#endif
