import OutboxCore

/// What outcomes and reasons mean, in plain words.
enum OutcomeWords {
    static let unknown =
        "the request was sent and its answer was lost, so the phone may have rung; a repetition replaces what it shows"

    /// What became of an attempt, as a clause that can follow a device's name.
    static func clause(_ entry: LedgerEntry) -> String {
        let answer = entry.answer.isEmpty ? "" : " (\(entry.answer))"
        return switch OutcomeKind.allCases.first(where: { $0.name == entry.outcome }) {
        case .delivered: "the provider accepted it"
        case .unregistered: "its token is dead\(answer): it is reached again once its app registers it"
        case .rejected: "the provider refused the message itself\(answer)"
        case .retry: "the provider could not take it\(answer)"
        case .throttled: "the provider asked for less\(answer)"
        case .misconfigured: "the provider says that key, topic or environment is wrong\(answer)"
        case .unknown: "unknown\(answer): \(unknown)"
        case .skipped: "nothing was sent: \(skipped(entry.reason ?? ""))"
        case nil: "\(entry.outcome)\(answer)"
        }
    }

    /// Why nothing was sent to a device, or a notification ended: the closed list of reasons.
    static func skipped(_ reason: String) -> String {
        switch SettlementReason(rawValue: reason) {
        case .superseded: "its subject had moved on"
        case .seen: "it had been seen already"
        case .noAccess: "the person may no longer see it"
        case .erased: "its conversation was erased"
        case .cancelled: "somebody cancelled it"
        case .expired: "its deadline had passed"
        case .noDevice: "the person had no active device"
        case .noToken: "no device of the person had a push token"
        case .noCredential: "no credential covers the device's app"
        case .ceiling: "every attempt that its kind allows was made"
        case .rejected: "the provider refused the message itself"
        case .crashes: "workers died again and again while they held it"
        case .muted: "every device of the person mutes this kind"
        case .revoked: "the device was revoked"
        case .tokenChanged: "the device had another token by then"
        case .coalesced: "a newer one took its place"
        case .read: "it had been read already"
        case nil: "the reason \(reason)"
        }
    }
}
