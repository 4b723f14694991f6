import Simulation

/// What goes wrong between a client and its peers in a simulated run.
package enum PipeFault: Int, FaultName {
    /// The name is not resolved; nobody answers at all; the connection is refused; it takes seconds.
    case nameUnknown, connectHangs, connectRefused, slowConnect
    /// The peer's first SETTINGS does not come, or late.
    case noSettings, lateSettings
    /// Buffers of the connection that take a few bytes only.
    case smallBuffers
    /// After so many bytes: a reset that loses what is on its way; one that comes behind the peer's last words; a
    /// connection that is dead and does not say so, both ways or one; the peer closes in order.
    case cutOff, cutAfterLastWords, blackHole, deafPeer, mutePeer, closedInOrder
    /// The peer does not read for a while; does not open its windows again; answers no PING.
    case stopsReading, closedWindow, ignoresPings
    /// The peer goes away: at the last stream it has looked at or before; with a warning first; twice, the second time
    /// with less; and closes at once.
    case goesAway, goesAwayWithWarning, goesAwayTwice, goesAwayAndCloses
    /// The peer allows another number of streams; none; another window for bodies.
    case limitChanges, limitIsZero, windowChanges
    /// The client's process stands still.
    case pause
    /// What becomes of a request: refused; refused, then closed; reset before it is looked at, with another code; reset
    /// after it was acted on, without an answer or in the middle of it; never answered; half an answer.
    case refused, refusedAndClosed, streamClosed, resetUnanswered, resetAfterHeaders, silence, halfAnswer
    /// Refused after an interim answer: the peer has looked at it, whatever it says.
    case refusedAfterInterim
    /// How it is answered: late; after an interim answer; before the request is whole; with a large body; in the end
    /// with trailers; with an error of ours, or of the peer.
    case slowAnswer, interimAnswer, earlyAnswer, largeBody, trailers, rejected, serverError

    /// The name in reports.
    package var name: String { "\(self)" }

    /// Most often: its share of the occasions in a run that has it at its worst.
    var worstRate: Double {
        switch self {
        case .nameUnknown, .connectHangs, .connectRefused, .noSettings: 0.3
        case .slowConnect, .lateSettings, .smallBuffers: 0.5
        case .cutOff, .cutAfterLastWords, .blackHole, .deafPeer, .mutePeer, .closedInOrder: 0.4
        case .ignoresPings, .closedWindow: 0.5
        case .stopsReading, .pause: 0.1
        case .goesAway, .goesAwayWithWarning, .goesAwayTwice, .goesAwayAndCloses: 0.15
        case .limitChanges, .windowChanges: 0.3
        case .limitIsZero: 0.1
        case .refused, .refusedAndClosed, .silence, .slowAnswer, .interimAnswer, .serverError: 0.4
        case .streamClosed, .resetUnanswered, .resetAfterHeaders, .halfAnswer, .refusedAfterInterim: 0.2
        case .earlyAnswer, .largeBody, .trailers, .rejected: 0.4
        }
    }
}
