/// A provider's own name for a message that it accepted or refused.
package enum ProviderIdentifier: Equatable, Sendable, CustomStringConvertible {
    /// A UUID (APNs).
    case uuid(Identifier)
    /// A text of printable ASCII, bounded by the provider's decoder (FCM).
    case text(String)

    package var description: String {
        switch self {
        case .uuid(let identifier): identifier.description
        case .text(let text): text
        }
    }
}
