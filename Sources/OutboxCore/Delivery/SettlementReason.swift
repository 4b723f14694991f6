/// The closed list of reasons for a settlement and for a skipped target.
package enum SettlementReason: String, CaseIterable, Sendable {
    case superseded, seen, erased, cancelled, expired, ceiling, rejected, crashes, muted, revoked, coalesced, read
    case noAccess = "no_access"
    case noDevice = "no_device"
    case noToken = "no_token"
    case noCredential = "no_credential"
    case tokenChanged = "token_changed"
}
