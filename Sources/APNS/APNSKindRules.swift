package import OutboxCore

extension APNSPushType {
    /// What makes a kind one that APNs cannot take; nil when nothing does. `define_kind` refuses the same in the same
    /// words, so only a kind that came around it can be at fault here.
    package static func fault(of kind: Kind) -> String? {
        guard let type = named(kind.pushType) else { return "APNs has no push type \"\(kind.pushType.prefix(64))\"" }
        guard type.allows(priority: kind.priority) else {
            let priorities = type.priorities.map(String.init).joined(separator: " or ")
            return "push type \(type.name) goes with priority \(priorities)"
        }
        guard case .template(let template) = kind.presentation else { return nil }
        return type.fault(of: template, kind)
    }

    private func fault(of template: Template, _ kind: Kind) -> String? {
        let hasMore = kind.sound != nil || kind.category != nil || kind.interruptionLevel != nil || kind.isMutable
        if template.isBadgeOnly, form != .raw {
            if form != .alert { return "form \"badge\" goes with push type alert" }
            if hasMore { return "a badge alone is without sound, category, interruption level and mutable content" }
            return nil
        }
        switch form {
        case .raw:
            return "push type \(name) needs the presentation raw: no template can write its payload"
        case .alert:
            if template.title == nil, template.body == nil { return "an alert needs a title or a body" }
        case .background, .data:
            let hasText = template.title != nil || template.subtitle != nil || template.body != nil
            if hasText || hasMore {
                return "push type \(name) shows nothing: without title, subtitle, body, sound, category, interruption"
                    + " level and mutable content"
            }
        case .app:
            break
        }
        var size = 0
        for line in [template.title, template.subtitle, template.body] { size += line?.fixedBytes ?? 0 }
        for member in kind.data ?? [] { size += member.fixedBytes }
        for text in [kind.container, kind.category, kind.sound] { size += text?.utf8.count ?? 0 }
        guard size > payloadLimit else { return nil }
        return "its fixed texts have \(size) bytes, push type \(name) takes \(payloadLimit) for the whole payload"
    }
}
