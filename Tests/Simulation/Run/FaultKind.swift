/// What a simulated run lets go wrong.
package enum FaultKind: Int, FaultName {
    /// A worker dies at a step of its work.
    case crash
    /// A worker stands still for longer than its lease, or for a moment, and goes on.
    case pause
    /// A worker is told to stop, and is started again.
    case stop
    /// A worker dies whenever it sends this one notification.
    case poison
    /// The statement was carried out, its answer is lost.
    case claimReplyLost, settleReplyLost, renewReplyLost, recoverReplyLost, otherReplyLost
    /// The statement never arrives.
    case requestLost
    /// The worker is told that the statement failed, and it is carried out later.
    case lateCommit
    /// The database asks to try again.
    case transient
    /// The statement takes seconds.
    case slowStatement
    /// Nobody reaches the database for a while.
    case databaseAway
    /// The database's clock is set.
    case clockStep
    /// A notification of the database does not arrive.
    case notifyLost
    /// A producer commits long after its insert.
    case lateProducer
    /// An open transaction holds a device, or the queue row of a notification.
    case deviceLocked, rowLocked
    /// The registry loses a notification, as after a restore.
    case orphan
    /// A lane's connection ends.
    case connectionLost
    /// The request is not sent.
    case notSent
    /// No answer: the provider has accepted, or has not.
    case unansweredAccepted, unansweredLost
    /// The answer takes nearly as long as it may, or longer.
    case slowAnswer
    /// A hook of the app raises an error, answers ids it was not asked about, takes longer than it may.
    case hookRaises, hookMixesUp, hookHangs
    /// Answers of the provider: the token is dead, with proof or without; our message is bad; key or topic are wrong;
    /// the token of the request is too old; too much of one target, or of the lane; the provider fails.
    case unregistered, badToken, rejected, wrongKey, wrongTopic, wrongSender, oldAccessToken, throttled, throttledLane
    case unavailable

    /// The name in reports.
    package var name: String { "\(self)" }

    /// Most often: its share of the occasions in a run that has it at its worst.
    var worstRate: Double {
        switch self {
        case .crash, .pause, .stop: 0.004
        case .poison, .orphan: 0.04
        case .claimReplyLost, .recoverReplyLost: 0.06
        case .settleReplyLost, .renewReplyLost: 0.2
        case .otherReplyLost, .requestLost, .lateCommit, .transient, .slowStatement: 0.01
        case .databaseAway, .clockStep, .connectionLost: 0.08
        case .notifyLost: 0.5
        case .lateProducer, .deviceLocked, .rowLocked: 0.15
        case .notSent, .unansweredAccepted, .unansweredLost: 0.15
        case .slowAnswer: 0.4
        case .hookRaises, .hookMixesUp, .hookHangs: 0.15
        case .unregistered, .badToken, .rejected, .wrongSender, .oldAccessToken, .throttled, .unavailable: 0.15
        case .wrongKey, .wrongTopic, .throttledLane: 0.03
        }
    }
}
