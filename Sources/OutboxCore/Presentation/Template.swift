/// The texts of a `template` kind.
package struct Template: Equatable, Sendable {
    /// First line; nil for none.
    package let title: TemplateText?
    /// Second line; nil for none.
    package let subtitle: TemplateText?
    /// The text itself; nil for none.
    package let body: TemplateText?

    /// The texts as the catalog declares them.
    package init(title: TemplateText?, subtitle: TemplateText? = nil, body: TemplateText? = nil) {
        self.title = title
        self.subtitle = subtitle
        self.body = body
    }
}
