import Foundation

/// Google's own schema of the API, against which requests are checked: `fcm.v1.discovery.json` in this folder, revision
/// 20261023, as published at https://fcm.googleapis.com/$discovery/rest?version=v1.
///
/// Checks what the schema says and no more: types, enumerations, formats, and no field that it does not have. JSON of
/// protocol buffers spells a field in either case (`collapseKey`, `collapse_key`).
struct DiscoveryDocument {
    private let schemas: [String: [String: Any]]
    /// The path of a method, such as `v1/{+parent}/messages:send`, by its id.
    let paths: [String: String]

    /// Reads the file.
    init() throws {
        let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("fcm.v1.discovery.json")
        let document = try Self.object(JSONSerialization.jsonObject(with: Data(contentsOf: file)))
        schemas = try Self.object(document["schemas"]).mapValues { try Self.object($0) }
        let projects = try Self.object(Self.object(document["resources"])["projects"])
        let messages = try Self.object(Self.object(projects["resources"])["messages"])
        let methods = try Self.object(messages["methods"]).values.map { try Self.object($0) }
        paths = Dictionary(
            uniqueKeysWithValues: methods.map { ($0["id"] as? String ?? "", $0["path"] as? String ?? "") })
    }

    private struct Unreadable: Error {}

    private static func object(_ value: Any?) throws -> [String: Any] {
        guard let object = value as? [String: Any] else { throw Unreadable() }
        return object
    }

    /// What is wrong with a request body of `messages.send`; empty for nothing.
    func faults(inRequest body: String) -> [String] {
        guard let value = try? JSONSerialization.jsonObject(with: Data(body.utf8)) else { return ["no JSON"] }
        var faults = check(value, ["$ref": "SendMessageRequest"], at: "request")
        let message = (value as? [String: Any])?["message"] as? [String: Any] ?? [:]
        // In words only: the description of Message.target.
        let targets = ["token", "fid", "topic", "condition"].filter { message[$0] != nil }
        if targets.count != 1 { faults.append("request.message: has \(targets.count) targets") }
        return faults
    }

    private func check(_ value: Any, _ schema: [String: Any], at place: String) -> [String] {
        if let name = schema["$ref"] as? String {
            guard let named = schemas[name] else { return ["\(place): schema \(name) is not in the document"] }
            return check(value, named, at: place)
        }
        switch schema["type"] as? String {
        case "object": return checkObject(value, schema, at: place)
        case "array":
            guard let elements = value as? [Any], let items = schema["items"] as? [String: Any] else {
                return ["\(place): no array"]
            }
            return elements.enumerated().flatMap { check($1, items, at: "\(place)[\($0)]") }
        case "string": return checkString(value, schema, at: place)
        case "boolean": return isBoolean(value) ? [] : ["\(place): no boolean"]
        case "integer", "number": return value is NSNumber && !isBoolean(value) ? [] : ["\(place): no number"]
        case "any": return []
        case let type: return ["\(place): unknown type \(type ?? "none")"]
        }
    }

    private func checkObject(_ value: Any, _ schema: [String: Any], at place: String) -> [String] {
        guard let object = value as? [String: Any] else { return ["\(place): no object"] }
        if let values = schema["additionalProperties"] as? [String: Any] {
            return object.flatMap { check($1, values, at: "\(place).\($0)") }
        }
        let properties = schema["properties"] as? [String: [String: Any]] ?? [:]
        return object.flatMap { key, member in
            guard let property = properties[key] ?? properties[camelCase(key)] else {
                return ["\(place): cannot find field \(key)"]
            }
            return check(member, property, at: "\(place).\(key)")
        }
    }

    private func checkString(_ value: Any, _ schema: [String: Any], at place: String) -> [String] {
        guard let text = value as? String else { return ["\(place): no string"] }
        if let words = schema["enum"] as? [String], !words.contains(text) { return ["\(place): not one of \(words)"] }
        switch schema["format"] as? String {
        case nil: return []
        case "google-duration":
            let isDuration = text.wholeMatch(of: /-?[0-9]{1,12}(\.[0-9]{1,9})?s/) != nil
            return isDuration ? [] : ["\(place): no duration"]
        case "google-datetime":
            let isTime = text.wholeMatch(of: /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)/) != nil
            return isTime ? [] : ["\(place): no time"]
        case let format: return ["\(place): unknown format \(format ?? "")"]
        }
    }

    /// JSONSerialization makes numbers of booleans; on Linux only the type of the number tells.
    private func isBoolean(_ value: Any) -> Bool {
        (value as? NSNumber).map { ["c", "B"].contains(String(cString: $0.objCType)) } ?? false
    }

    private func camelCase(_ name: String) -> String {
        let parts = name.split(separator: "_")
        return (parts.first.map(String.init) ?? "") + parts.dropFirst().map(\.capitalized).joined()
    }
}
