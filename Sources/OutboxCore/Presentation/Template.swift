/// What a kind shows.
package struct Template: Equatable, Sendable {
    /// First line; nil for none.
    package let title: TemplateLine?
    /// Second line; nil for none.
    package let subtitle: TemplateLine?
    /// The text itself; nil for none.
    package let body: TemplateLine?
    /// Whether the lines are keys into the app's language files.
    package let isLocalized: Bool
    /// Whether the number on the app's icon is all that changes: no lines, no dictionary.
    package let isBadgeOnly: Bool

    /// The lines as the catalog declares them.
    package init(
        lines title: TemplateLine?, _ subtitle: TemplateLine?, _ body: TemplateLine?, isLocalized: Bool = false,
        isBadgeOnly: Bool = false
    ) {
        self.title = title
        self.subtitle = subtitle
        self.body = body
        self.isLocalized = isLocalized
        self.isBadgeOnly = isBadgeOnly
    }

    /// Texts without variants.
    package init(title: TemplateText?, subtitle: TemplateText? = nil, body: TemplateText? = nil) {
        self.init(lines: title.map { .text($0) }, subtitle.map { .text($0) }, body.map { .text($0) })
    }
}
