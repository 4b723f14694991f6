/// A fault put into the simulated store on purpose, to see that the simulation notices.
package enum StoreDefect: String, CaseIterable, Sendable {
    /// The settle takes no notice of which positions the lease still holds, and writes for a lease that is gone.
    case settleUnfenced
    /// A repeated settle adds its ledger rows again.
    case ledgerRepeats
    /// The settle puts rows back although their bit has left the lease.
    case returnsWithoutBit
    /// The claim asks the ledger only from the second attempt on, instead of whenever there may be history.
    case historyByAttempt
    /// The claim takes no notice of a target's own wait.
    case waitsForgotten
    /// The recovery writes no `unknown` rows.
    case recoveryIsSilent
    /// The recovery takes leases that have not lapsed.
    case recoversLiveLeases
    /// The recovery forgets the rows of a lapsed lease.
    case recoveryLosesRows
    /// The adoption takes every lease of the owner, not those that were asked for.
    case adoptsEverything
    /// The claim takes a row from the queue that is neither in the lease nor in the answer.
    case claimLosesRow
    /// The claim does not look whether the notification is over.
    case verdictBlind
    /// A dead token is cleared without looking which token was sent.
    case effectsUnguarded
    /// An exceptional end is not written.
    case endsForgotten
    /// A lease is deleted with the first flush, whatever it still holds.
    case leaseEndsEarly
    /// Registering a device does not join what waits.
    case deviceJoinsNothing
    /// The claim does not ask the ledger of a device that came from another route.
    case movesForgotten
    /// Supersessions, receipts and erasures are not looked at.
    case factsIgnored
    /// A recovery that is carried out late takes what has lapsed since it was sent.
    case recoversLate
    /// The recovery takes nobody for dead.
    case nobodyIsDead
    /// A wait that ends behind the cursor of a second look is nobody's.
    case overlooksDue
}
