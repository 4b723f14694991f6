import Foundation
import Support

/// The paths of all members of a JSON object, and its texts.
struct JSONShape {
    private(set) var keys: Set<String> = []
    private(set) var texts: Set<String> = []

    /// Takes the text of an object apart.
    init(_ source: String) throws {
        guard let object = try JSONSerialization.jsonObject(with: Data(source.utf8)) as? [String: Any] else {
            throw TestSetupError("no JSON object: \(source)")
        }
        add(object, below: "")
    }

    private mutating func add(_ value: Any, below path: String) {
        switch value {
        case let object as [String: Any]:
            for (key, member) in object {
                keys.insert(path + key)
                add(member, below: path + key + ".")
            }
        case let list as [Any]:
            for member in list { add(member, below: path) }
        case let text as String:
            texts.insert(text)
        default:
            break
        }
    }
}
