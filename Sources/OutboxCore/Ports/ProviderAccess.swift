/// Whether a provider's requests can be authorised. Access comes and goes like a connection: a token that is signed
/// here is there when it is wanted, one that comes over the wire is asked for and waited for.
///
/// ```
///   awaited ────► granted ◄────► unavailable     it asks again by itself
///      │             │                │
///      └─────────────┴──► refused ◄───┘          asked again by the probe after the lane's pause
/// ```
///
/// While access is not granted nothing is claimed or sent for the lane.
package enum ProviderAccess: Equatable, Sendable {
    /// A token is at hand; `byAnotherCredential` when the credential behind it is not the one of the token before.
    case granted(byAnotherCredential: Bool)
    /// No token is at hand yet; one has been asked for.
    case awaited
    /// No token can be had before `retryAt`, and none is left: whoever hands them out is away, or at fault.
    case unavailable(reason: String, retryAt: ContinuousClock.Instant)
    /// The credential is refused, or cannot be used: the outcome says why.
    case refused(Outcome)

    /// A token is at hand, of the credential that was in use before.
    package static let granted = ProviderAccess.granted(byAnotherCredential: false)
}

/// What becomes of a wish for another access token, after an answer that calls the request's token too old.
package enum TokenReplacement: Equatable, Sendable {
    /// There is a new one, for new connections: the old ones are bound to the token that was refused.
    case replaced
    /// A new one has been asked for; until it is there access is not granted.
    case requested
    /// The request carried an older token than the one in use: nothing is to be done but to repeat it.
    case known
    /// A new token was refused too, within the time in which one has to do: the fault lies elsewhere.
    case refused
}
