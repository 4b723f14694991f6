/// A statement of a worker, and where a worker can die around it.
enum Statement: Int, CaseIterable {
    case waiting, claim, settle, renew, adopt, recover, recheck, effects, resolve, retryHeld, register, routes
    case holdAwake, releaseAwake, unregister
    /// Hooks of the app, which are asked on a session of their own.
    case askHooks
    /// Not a worker's: a producer or back end.
    case enqueue

    var name: String { "\(self)" }

    var lostReply: FaultKind {
        switch self {
        case .claim: .claimReplyLost
        case .settle: .settleReplyLost
        case .renew: .renewReplyLost
        case .recover: .recoverReplyLost
        default: .otherReplyLost
        }
    }

    /// The step of a worker that is about to send it.
    var sending: WorkerStep {
        switch self {
        case .claim: .claimSent
        case .settle: .settleSent
        case .renew: .renewSent
        case .recover: .recoverSent
        case .adopt: .adoptSent
        case .recheck: .recheckSent
        case .effects: .effectsSent
        case .askHooks: .hooksAsked
        default: .otherSent
        }
    }

    /// The step of a worker that hears its answer.
    var answered: WorkerStep {
        switch self {
        case .claim: .claimAnswered
        case .settle: .settleAnswered
        case .renew: .renewAnswered
        case .recover: .recoverAnswered
        case .adopt: .adoptAnswered
        case .recheck: .recheckAnswered
        case .effects: .effectsAnswered
        case .askHooks: .hooksAnswered
        default: .otherAnswered
        }
    }
}

/// Where a worker can die or stand still.
enum WorkerStep: Int, CaseIterable {
    case claimSent, claimAnswered, settleSent, settleAnswered, renewSent, renewAnswered, recoverSent, recoverAnswered
    case adoptSent, adoptAnswered, recheckSent, recheckAnswered, effectsSent, effectsAnswered, otherSent, otherAnswered
    case hooksAsked, hooksAnswered
    case requestMade, requestWritten, answerHeard, draining

    /// How much more often than at other steps faults strike at this one, because it is seldom come to.
    var weight: Double {
        switch self {
        case .renewSent, .renewAnswered, .recheckSent, .recheckAnswered: 16
        case .recoverSent, .recoverAnswered: 8
        case .adoptSent, .adoptAnswered, .draining: 20
        case .hooksAsked, .hooksAnswered: 8
        case .effectsSent, .effectsAnswered: 4
        case .otherSent, .otherAnswered: 0.5
        default: 1
        }
    }
}
