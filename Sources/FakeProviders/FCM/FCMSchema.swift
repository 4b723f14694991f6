/// Google's schema of a send request, kept apart from the sender's encoder on purpose.
///
/// Source: the discovery document of FCM v1 (`fcm.googleapis.com/$discovery/rest?version=v1`, revision 20261023), from
/// `SendMessageRequest` down. Proto JSON takes each name in camelCase and in snake_case.
enum FCMSchema {
    /// What a field holds.
    indirect enum Kind: Sendable {
        case text
        case flag
        case integer
        case number
        /// A duration such as `3.5s`.
        case duration
        /// A moment in RFC 3339.
        case moment
        /// One of these words; proto JSON takes them in any case where FCM's own pages do.
        case word([String])
        /// Texts by any name.
        case textByName
        /// Any JSON object (`google.protobuf.Struct`).
        case object
        case list(Kind)
        /// An object of the type of this name.
        case message(String)
    }

    /// What is wrong with the shape of a whole body.
    static func fault(of body: JSONValue) -> FCMFault? {
        fault(of: body, type: "SendMessageRequest", at: "")
    }

    /// The seconds of a duration (proto JSON), rounded down; nil when it is none.
    static func seconds(of text: String) -> Int64? {
        guard text.hasSuffix("s") else { return nil }
        let parts = text.dropLast().split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        guard let whole = parts.first, !whole.isEmpty, whole.utf8.allSatisfy({ (48...57).contains($0) }) else {
            return nil
        }
        if parts.count == 2 {
            guard (1...9).contains(parts[1].utf8.count), parts[1].utf8.allSatisfy({ (48...57).contains($0) }) else {
                return nil
            }
        }
        return Int64(whole)
    }

    private static func fault(of value: JSONValue, type: String, at place: String) -> FCMFault? {
        guard let members = value.members else {
            return invalid(place, "type.googleapis.com/google.firebase.fcm.v1.\(type)")
        }
        let fields = types[type] ?? [:]
        var known: Set<String> = []
        for member in members {
            let name = camelCase(member.name)
            guard let kind = fields[name] else {
                let location = place.isEmpty ? "" : " at '\(place)'"
                return .badRequest(
                    place,
                    "Invalid JSON payload received. Unknown name \"\(member.name)\"\(location): Cannot find field.")
            }
            let field = place.isEmpty ? member.name : place + "." + member.name
            if !known.insert(name).inserted {
                return .badRequest(field, "Invalid value at '\(place)' (oneof), field '\(member.name)' is already set.")
            }
            if let fault = fault(of: member.value, kind: kind, at: field) { return fault }
        }
        return nil
    }

    private static func fault(of value: JSONValue, kind: Kind, at field: String) -> FCMFault? {
        switch kind {
        case .text: return value.text == nil ? invalid(field, "TYPE_STRING") : nil
        case .flag:
            if case .bool = value { return nil }
            return invalid(field, "TYPE_BOOL")
        case .integer: return value.integer.flatMap { Int32(exactly: $0) } == nil ? invalid(field, "TYPE_INT32") : nil
        case .number:
            if case .number = value { return nil }
            return invalid(field, "TYPE_FLOAT")
        case .duration:
            guard let text = value.text, seconds(of: text) != nil else {
                return invalid(field, "type.googleapis.com/google.protobuf.Duration")
            }
            return nil
        case .moment:
            guard let text = value.text, text.utf8.count >= 20, text.hasSuffix("Z") else {
                return invalid(field, "type.googleapis.com/google.protobuf.Timestamp")
            }
            return nil
        case .word(let words):
            guard let text = value.text, words.contains(text.uppercased()) else { return invalid(field, "TYPE_ENUM") }
            return nil
        case .textByName:
            guard let members = value.members else { return invalid(field, "TYPE_MAP") }
            for (index, member) in members.enumerated() where member.value.text == nil {
                return invalid("\(field)[\(index)].value", "TYPE_STRING")
            }
            return nil
        case .object:
            return value.members == nil ? invalid(field, "type.googleapis.com/google.protobuf.Struct") : nil
        case .list(let kind):
            guard case .array(let elements) = value else { return invalid(field, "TYPE_LIST") }
            for (index, element) in elements.enumerated() {
                if let fault = fault(of: element, kind: kind, at: "\(field)[\(index)]") { return fault }
            }
            return nil
        case .message(let type): return fault(of: value, type: type, at: field)
        }
    }

    /// The value itself is left out of the words, though Google echoes it: payload values stay out of logs.
    private static func invalid(_ field: String, _ type: String) -> FCMFault {
        .badRequest(field, "Invalid value at '\(field)' (\(type))")
    }

    private static func camelCase(_ name: String) -> String {
        let parts = name.split(separator: "_")
        guard let first = parts.first, parts.count > 1 else { return name }
        return parts.dropFirst().reduce(into: String(first)) { $0 += $1.prefix(1).uppercased() + $1.dropFirst() }
    }
}
