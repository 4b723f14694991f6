/// The version of this program.
package enum PostbellVersion {
    /// As in CHANGELOG.md, where what is not released yet stands under *Unreleased*.
    package static let current = "0.1.0-dev"
}
