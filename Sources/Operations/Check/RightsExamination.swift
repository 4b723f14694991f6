import OutboxPostgres

/// Whether the worker's role may do what it must, and nothing else: who takes the worker over gets what its role may.
struct RightsExamination {
    /// The role, as remedies name it.
    let role: String

    func judge(_ rights: RoleRights) -> [CheckItem] {
        [missing(rights)] + excess(rights)
    }

    // MARK: Too few

    private func missing(_ rights: RoleRights) -> CheckItem {
        guard !rights.missing.isEmpty else {
            return .ok(.rights, "\(role) may do all that a worker does (\(Grant.dispatcher.count) grants)")
        }
        let lacks = "lacks \(Self.list(rights.missing.map(\.description)))"
        let finding =
            rights.isDispatcher ? "\(role) \(lacks)" : "\(role) is no member of postbell_dispatcher and \(lacks)"
        return .failure(.rights, .refused, finding, next: remedy(rights))
    }

    private func remedy(_ rights: RoleRights) -> String {
        if !rights.isDispatcher { return "GRANT postbell_dispatcher TO \(role)" }
        if !rights.inheritsDispatcher {
            return "let the role inherit from postbell_dispatcher (ALTER ROLE \(role) INHERIT, then grant it anew)"
        }
        let first = rights.missing.first?.description ?? ""
        return "give postbell_dispatcher back what migrations have granted it: GRANT \(first) TO postbell_dispatcher"
            + (rights.missing.count > 1 ? ", and so on" : "")
    }

    // MARK: Too many

    private func excess(_ rights: RoleRights) -> [CheckItem] {
        var items: [CheckItem] = []
        for attribute in rights.attributes {
            items.append(
                excess(
                    "\(role) has the attribute \(attribute)", "ALTER ROLE \(role) NO\(attribute)",
                    isGrave: attribute != "CREATEDB")
            )
        }
        for other in rights.memberships {
            items.append(
                excess("\(role) is a member of \(other)", "REVOKE \(other) FROM \(role)", isGrave: Self.isGrave(other)))
        }
        // What a membership brings is said by its name.
        if rights.memberships.isEmpty, let first = rights.excess.first {
            let list = Self.list(rights.excess.map(\.description))
            items.append(
                excess(
                    "\(role) has more rights in the schema than a worker needs: \(list)",
                    "REVOKE \(first) FROM whom it was granted to: \(role), postbell_dispatcher or PUBLIC", isGrave: true
                ))
        }
        items += tables("change", rights.writableTables, isGrave: true)
        items += tables("read", rights.readableTables, isGrave: false)
        for place in rights.creates {
            items.append(
                excess(
                    "\(role) may create objects in \(place)", "REVOKE CREATE ON \(place) FROM \(role), or from PUBLIC",
                    isGrave: false))
        }
        return items.isEmpty ? [.ok(.excess, "\(role) may do nothing else")] : items
    }

    private func tables(_ verb: String, _ names: [String], isGrave: Bool) -> [CheckItem] {
        guard let first = names.first else { return [] }
        return [
            excess(
                "\(role) may \(verb) tables of other schemas: \(Self.list(names))",
                "REVOKE ALL ON \(first) FROM \(role), or from PUBLIC; a worker needs the schema postbell only",
                isGrave: isGrave)
        ]
    }

    private func excess(_ finding: String, _ remedy: String, isGrave: Bool) -> CheckItem {
        isGrave
            ? .failure(.excess, .bad, finding, next: remedy)
            : .warning(.excess, finding, next: remedy)
    }

    /// Whether a member could change notifications or devices, or read tokens and other people's data.
    private static func isGrave(_ role: String) -> Bool {
        switch role {
        case "postbell_owner", "postbell_operator", "postbell_producer", "postbell_registrar": true
        case "pg_read_all_data", "pg_write_all_data", "pg_read_server_files", "pg_write_server_files",
            "pg_execute_server_program":
            true
        default: false
        }
    }

    private static func list(_ names: [String]) -> String {
        let shown = names.prefix(3).joined(separator: ", ")
        return names.count > 3 ? "\(shown) and \(names.count - 3) more" : shown
    }
}
