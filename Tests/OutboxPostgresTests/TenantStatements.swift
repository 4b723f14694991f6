import OutboxCore

/// Random statements that a login may try, by role: allowed and forbidden ones, about its own tenant `mine`, about
/// tenant `other`, which may have the same keys, and about what nobody has. The same seed gives the same statements.
struct TenantStatements {
    /// A statement with the tenant and the person that the session names before it.
    struct Attempt {
        let sql: String
        var tenant = "mine"
        var principal = ""
    }

    static let roles = ["postbell_producer", "postbell_registrar", "postbell_operator", "postbell_reader"]

    private var random: SplitMix

    init(seed: UInt64) {
        random = SplitMix(seed: seed)
    }

    /// The next statement of a login that has this role. One in ten names a tenant that is not its own.
    mutating func next(for role: String) -> Attempt {
        let sql =
            switch role {
            case "postbell_producer": producing()
            case "postbell_registrar": registering()
            case "postbell_operator": chance(0.4) ? operating() : reading()
            default: reading()
            }
        let tenant = chance(0.1) ? pick("other", "fresh", "nowhere", "default", "") : "mine"
        return Attempt(sql: sql, tenant: tenant, principal: chance(0.05) ? pick("anna", "zoe") : "")
    }

    // MARK: Draws

    private mutating func chance(_ probability: Double) -> Bool { random.fraction() < probability }

    private mutating func pick(_ choices: String...) -> String {
        choices[Int.random(in: 0..<choices.count, using: &random)]
    }

    private mutating func number(_ range: ClosedRange<Int>) -> Int { .random(in: range, using: &random) }

    private mutating func key() -> String { "'k\(number(1...40))'" }
    private mutating func subject() -> String { "'s\(number(1...8))'" }
    private mutating func thread() -> String { "'t\(number(1...8))'" }
    private mutating func person() -> String { pick("'anna'", "'ben'", "'cleo'", "'zoe'") }
    private mutating func client() -> String { pick("'phone'", "'tablet'", "'watch'") }
    private mutating func tenant() -> String { pick("'mine'", "'mine'", "'other'", "'fresh'", "'nowhere'", "NULL") }

    /// A device of mine, of the other tenant, or of nobody.
    private mutating func device() -> String {
        "probe.device(\(pick("'mine'", "'mine'", "'other'", "'nowhere'")), \(person()), \(client()))"
    }

    private mutating func notification() -> String {
        "probe.notification(\(pick("'mine'", "'mine'", "'other'", "'nowhere'")), \(key()))"
    }

    /// An id that says no more than where it is in the order of ids.
    private mutating func ownNotification() -> String { "probe.notification('mine', \(key()))" }

    private mutating func payload() -> String {
        pick("'{}'", "'{\"word\": \"tea\"}'", "'{\"word\": 7}'", "'{\"other\": 1}'", "'{'")
    }

    // MARK: Roles

    private mutating func producing() -> String {
        switch number(1...12) {
        case 1...4: insertion()
        case 5:
            "SELECT postbell.enqueue('note', \(person()), \(key()), \(payload()), \(subject()), \(thread()), "
                + "\(tenant()))"
        case 6:
            "SELECT postbell.enqueue_or_note(\(pick("'note'", "'none'")), \(person()), \(key()), \(payload()), "
                + "tenant_id => \(tenant()), device_id => \(device()))"
        case 7: "SELECT postbell.supersede(\(tenant()), \(subject()))"
        case 8: "SELECT postbell.erase(\(tenant()), \(thread()))"
        case 9: "SELECT count(*) FROM postbell.outbox WHERE id = \(notification())"
        case 10: pick("SELECT count(*) FROM postbell.outbox", "SELECT postbell.mapping()")
        case 11:
            pick(
                "UPDATE postbell.outbox SET payload = '{}'", "DELETE FROM postbell.outbox",
                "SELECT * FROM postbell.devices",
                "SELECT payload FROM postbell.outbox", "SELECT postbell.sync('anna')", "SELECT postbell.inbox('anna')",
                "SET ROLE postbell_owner",
                "SELECT tenant_id FROM postbell.tenants", "SELECT app FROM postbell.routes")
        default: "SELECT postbell.install_codes('{\"a\": {\"title\": \"t\"}}')"
        }
    }

    private mutating func insertion() -> String {
        var columns = "principal_id, kind, dedupe_key, subject, thread, payload, expires_at"
        var values = "\(person()), \(pick("'note'", "'note'", "'none'", "'test'")), \(key()), \(subject()), \(thread())"
        values += ", \(payload()), \(pick("NULL", "NULL", "'2020-01-01+00'"))"
        if chance(0.3) {
            columns += ", tenant_id"
            values += ", \(tenant())"
        }
        if chance(0.3) {
            columns += ", device_id, except_device_id"
            values += ", \(device()), \(pick("NULL", device()))"
        }
        let conflict = pick("", "ON CONFLICT DO NOTHING", "ON CONFLICT DO NOTHING")
        return "INSERT INTO postbell.outbox (\(columns)) VALUES (\(values)) \(conflict) RETURNING id"
    }

    private mutating func registering() -> String {
        switch number(1...17) {
        case 1...4: registration()
        case 5: "SELECT postbell.device_activate(\(device()))"
        case 6: "SELECT \(Self.deviceColumns) FROM postbell.device_get(\(device()), \(pick("NULL", person())))"
        case 7: "SELECT \(Self.deviceColumns) FROM postbell.device_list(\(person()), NULL, \(number(1...3)))"
        case 8:
            "SELECT postbell.device_revoke("
                + pick(
                    "device_id => \(device())", "device_ref => 'ref-\(number(1...3))'",
                    "session_ref => 'session-\(number(1...3))'", "principal_id => \(person()), device_ref => 'ref-1'")
                + ", reason => \(pick("'logout'", "'device_revoked'", "'logout'", "'erased'")))"
        case 9: "SELECT postbell.device_delete(\(device()))"
        case 10: "SELECT postbell.device_mute(\(device()), \(pick("'{note}'", "'{}'", "'{none}'")))"
        case 11: "SELECT postbell.device_test(\(device()), \(pick("NULL", "'i1'", "'i2'")))"
        case 12:
            "SELECT cardinality(obsolete), cardinality(unread) FROM postbell.sync(\(person()), "
                + "ARRAY[\(notification()), \(notification())], ARRAY[\(subject())], ARRAY[\(notification())])"
        case 13: importation()
        case 14: pick("SELECT postbell.acknowledge(\(notification()))", acknowledgement())
        case 15: forgetting()
        case 16:
            "SELECT * FROM postbell.inbox(\(person()), \(pick("NULL", ownNotification())), \(number(1...9)))"
        default:
            pick(
                "SELECT count(*) FROM postbell.devices", "SELECT postbell.enqueue('note', 'anna', 'k1')",
                "SELECT * FROM postbell.idempotency_keys", "SELECT * FROM postbell.device_view",
                "SELECT postbell.mapping()", "DELETE FROM postbell.devices", "SELECT app FROM postbell.routes")
        }
    }

    /// Seldom of somebody who has much, or the others had nothing to do.
    private mutating func forgetting() -> String {
        pick(
            "SELECT postbell.forget(\(pick("'cleo'", "'zoe'", "'nobody'")), \(number(1...9)))",
            "SELECT postbell.forget(\(chance(0.1) ? person() : "'cleo'"), \(number(1...3)))",
            "SELECT postbell.forget_tenant(\(tenant()))")
    }

    private mutating func acknowledgement() -> String {
        "SELECT postbell.acknowledge(\(notification()), \(person())) IS NULL"
    }

    private static let deviceColumns = """
        principal_id, client_device_id, name, app, provider, environment, token_fingerprint, status, disabled_reason, \
        muted_kinds, device_ref, session_ref, failure_count
        """

    /// A token that the other tenant's zoe may have, or one of this tenant.
    private mutating func token() -> String {
        chance(0.4) ? "'shared-token-\(number(1...9))'" : "'token-of-mine-\(number(1...9))'"
    }

    private mutating func registration() -> String {
        var arguments = "\(person()), \(client()), 'fcm', \(pick("'app.two'", "'app.two'", "'app.new'", "'app.newer'"))"
        arguments += ", \(token()), name => 'of mine'"
        if chance(0.3) { arguments += ", device_ref => 'ref-\(number(1...3))'" }
        if chance(0.3) { arguments += ", session_ref => 'session-\(number(1...3))'" }
        if chance(0.2) { arguments += ", pending => true" }
        if chance(0.3) { arguments += ", idempotency_key => 'i\(number(1...9))'" }
        if chance(0.1) { arguments += ", environment => 'sandbox'" }
        return "SELECT token_fingerprint, device_status FROM postbell.device_register(\(arguments))"
    }

    private mutating func importation() -> String {
        var rows: [String] = []
        for _ in 1...3 {
            var row = "'provider', 'fcm', 'principal_id', \(person()), 'client_device_id', \(client())"
            row += ", 'app', \(pick("'app.two'", "'app.new'", "'app.newest'")), 'token', \(token())"
            rows.append("jsonb_build_object(\(row))")
        }
        return "SELECT * FROM postbell.devices_import(jsonb_build_array(\(rows.joined(separator: ", "))))"
    }

    private mutating func operating() -> String {
        pick(
            "SELECT postbell.cancel(\(notification()))", "SELECT postbell.requeue(\(notification()))",
            "SELECT postbell.requeue(\(notification()), '2020-01-01+00')",
            "SELECT postbell.forget_tenant(\(pick("'other'", "'fresh'", "'nowhere'", "NULL")))",
            "SELECT postbell.forget_tenant('mine', \(number(1...2)))",
            "SELECT postbell.enqueue('note', 'anna', \(key()))", "UPDATE postbell.devices SET token = NULL",
            "SELECT postbell.retain()", "SELECT postbell.set_retention('events', '1 day')",
            "SELECT postbell.drop_ledger_day()")
    }

    private mutating func reading() -> String {
        let condition = pick(
            "true", "tenant_id = 'other'", "tenant_id <> 'mine'", "probe.leak(tenant_id)",
            "principal_id = \(person()) AND probe.leak(tenant_id || principal_id)")
        switch number(1...12) {
        case 1: return "SELECT \(Self.notificationColumns) FROM postbell.notifications WHERE \(condition)"
        case 2:
            return "SELECT \(Self.notificationColumns) FROM postbell.notifications WHERE id = \(notification()) "
                + "OR subject = \(subject())"
        case 3:
            return "SELECT tenant_id, provider, topic, outcome, final, skip_reason, token_fingerprint, device_name "
                + "FROM postbell.ledger WHERE \(pick("true", "tenant_id <> 'mine'", "probe.leak(tenant_id)"))"
        case 4...5:
            return
                "SELECT * FROM (SELECT \(pick(Self.columns[0], Self.columns[1], Self.columns[2], Self.columns[3]))) r"
        case 6: return "SELECT tenant_id, principal_id, dedupe_key, subject FROM postbell.outbox WHERE \(condition)"
        case 7:
            return
                "SELECT tenant_id, principal_id, client_device_id, status FROM postbell.devices WHERE \(condition)"
        case 8: return "SELECT tenant_id, name, principal_id FROM postbell.events WHERE \(condition)"
        case 9: return looking()
        case 10:
            return "SELECT 1 / count(*) FROM postbell.\(pick("outbox", "devices", "events", "receipts")) "
                + "WHERE tenant_id = 'other' AND principal_id = \(person())"
        case 11: return "SELECT count(*), min(tenant_id), max(tenant_id) FROM postbell.\(tenantTable())"
        default:
            return pick(
                "SELECT token FROM postbell.devices", "SELECT payload FROM postbell.outbox",
                "SELECT * FROM postbell.leases",
                "SELECT * FROM postbell.role_tenants", "SELECT * FROM postbell.idempotency_keys",
                "SELECT * FROM postbell.secrets", "DELETE FROM postbell.events",
                "SELECT postbell.device_list('anna')", "SELECT postbell.tenant_number('other')")
        }
    }

    private mutating func tenantTable() -> String {
        pick(
            "tenants", "tenant_routes", "supersessions", "erasures", "receipts", "outbox", "devices", "events",
            "acknowledgements")
    }

    /// What counts over all that a reader sees, and has no tenant in its rows.
    private mutating func looking() -> String {
        pick(
            "SELECT provider, app, urgency, waiting, due, crashed FROM postbell.queue_depth",
            "SELECT provider, app, claimed, open FROM postbell.in_flight",
            "SELECT place, attempt, crashes FROM postbell.places",
            "SELECT tenant_no, attempt, is_open FROM postbell.lease_positions",
            "SELECT provider, environment, app FROM postbell.routes",
            "SELECT route, workers, state FROM postbell.route_service",
            "SELECT fault, detail FROM postbell.audit()", "SELECT * FROM postbell.audit_scope()",
            "SELECT status, reason FROM postbell.target_ends t JOIN postbell.deliveries d USING (id)",
            "SELECT name, state FROM postbell.worker_health")
    }

    private static let notificationColumns = """
        tenant_id, principal_id, kind, dedupe_key, subject, thread, urgency, status, reason, place, attempts, \
        delivered, skipped
        """
    private static let columns = [
        "count(*), min(tenant_no), max(tenant_no) FROM postbell.queue",
        "count(*), min(tenant_no), max(tenant_no) FROM postbell.deliveries",
        "count(*), min(tenant_no), max(tenant_no) FROM postbell.settlements",
        "count(*) FROM postbell.notifications n JOIN postbell.events e ON e.detail ->> 'notification_id' = n.id::text",
    ]
}
