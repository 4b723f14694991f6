import Glibc

/// A provider token that is ready to be presented. Prints who it is for, never itself.
package struct ProviderToken: Equatable, Sendable, CustomStringConvertible, CustomReflectable {
    /// The value of the header `authorization`: a secret.
    package let authorization: String
    /// The id of the key that signed it.
    package let keyID: String
    /// The team that it speaks for.
    package let teamID: String
    /// The claim `iat`, seconds since the Unix epoch.
    package let issuedAt: Int64
    /// Which key of its cache signed it, counted from 1: two tokens of one number were signed by one key.
    package let keyNumber: Int

    package var description: String { "provider token of team \(teamID), key \(keyID), issued at \(issuedAt)" }

    /// Empty: a dump of the value shows nothing of the token.
    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// One moment on both clocks: the wall clock that tokens carry, and the monotonic one that no correction can move.
package struct CredentialInstant: Equatable, Sendable {
    /// Seconds since the Unix epoch.
    package let seconds: Int64
    /// The same moment on the clock that only goes forward.
    package let monotonic: ContinuousClock.Instant

    /// A moment as given.
    package init(seconds: Int64, monotonic: ContinuousClock.Instant) {
        self.seconds = seconds
        self.monotonic = monotonic
    }

    /// The present.
    package static var now: CredentialInstant {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return CredentialInstant(seconds: Int64(time.tv_sec), monotonic: .now)
    }
}

/// Why no provider token could be made.
package enum CredentialError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The key file was not accepted.
    case file(KeyFileError)
    /// The file is in order but does not hold the right key.
    case key(path: String, SigningKeyError)
    /// OpenSSL could not sign.
    case signing(path: String)

    package var description: String {
        switch self {
        case .file(let error): error.description
        case .key(let path, let error): "key file \(path) \(error.complaint); \(SigningKeyError.advice)"
        case .signing(let path): "signing with the key in \(path) failed"
        }
    }
}
