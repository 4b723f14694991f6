/// A token that Google has handed out for a service account. Prints when it ends, never itself.
package struct AccessToken: Equatable, Sendable, CustomStringConvertible, CustomReflectable {
    /// The value of the header `authorization`: a secret.
    package let authorization: String
    /// Which token of its source it is, counted from 1.
    package let number: Int
    /// Which account and key of its source it was handed out for, counted from 1.
    package let accountNumber: Int
    /// When it was asked for; its life counts from then.
    package let askedAt: ContinuousClock.Instant
    /// How long it is good for.
    package let life: Duration

    /// A token as it was granted.
    package init(
        authorization: String, number: Int, accountNumber: Int, askedAt: ContinuousClock.Instant, life: Duration
    ) {
        self.authorization = authorization
        self.number = number
        self.accountNumber = accountNumber
        self.askedAt = askedAt
        self.life = life
    }

    /// When another is asked for: at half its life.
    package var refreshAt: ContinuousClock.Instant { askedAt + life / 2 }

    /// When it is not sent any more: a little before its end, for what is on its way then.
    package var endsAt: ContinuousClock.Instant { askedAt + life - min(.seconds(10), life / 10) }

    package var description: String { "access token \(number), good for \(life)" }

    /// Empty: a dump of the value shows nothing of the token.
    package var customMirror: Mirror { Mirror(self, children: []) }
}
