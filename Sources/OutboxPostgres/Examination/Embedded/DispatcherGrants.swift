// swift-format-ignore-file
// Written by scripts/embed-grants from sql/schema.sql; not edited by hand.

extension Grant {
    /// What postbell_dispatcher is granted.
    package static let dispatcher: [Grant] = [
        Grant(
            "EXECUTE", .function,
            "ask_hook(text, text, uuid[])"),
        Grant(
            "EXECUTE", .function,
            "audit(timestamp with time zone, interval)"),
        Grant(
            "EXECUTE", .function,
            "audit_scope(timestamp with time zone)"),
        Grant(
            "EXECUTE", .function,
            "awake_class()"),
        Grant(
            "EXECUTE", .function,
            "create_partitions(integer, text)"),
        Grant(
            "EXECUTE", .function,
            "device_effects(bigint[], integer[], smallint[], timestamp with time zone[], uuid[], integer)"),
        Grant(
            "EXECUTE", .function,
            "drop_ledger_day()"),
        Grant(
            "EXECUTE", .function,
            "heartbeat_limit()"),
        Grant(
            "EXECUTE", .function,
            "hook_fault(oid)"),
        Grant(
            "EXECUTE", .function,
            "hook_faults()"),
        Grant(
            "EXECUTE", .function,
            "hook_function(name, name)"),
        Grant(
            "EXECUTE", .function,
            "mapping()"),
        Grant(
            "EXECUTE", .function,
            "mapping_entries()"),
        Grant(
            "EXECUTE", .function,
            "mapping_version()"),
        Grant(
            "EXECUTE", .function,
            "operator_tenant()"),
        Grant(
            "EXECUTE", .function,
            "outcome_name(smallint)"),
        Grant(
            "EXECUTE", .function,
            "prune_idempotency_keys(integer)"),
        Grant(
            "EXECUTE", .function,
            "reader_tenant_no()"),
        Grant(
            "EXECUTE", .function,
            "recover(timestamp with time zone, timestamp with time zone, integer, integer, integer)"),
        Grant(
            "EXECUTE", .function,
            "retain(integer)"),
        Grant(
            "EXECUTE", .function,
            "retry_held(smallint[], integer)"),
        Grant(
            "EXECUTE", .function,
            "uuid7(timestamp with time zone)"),
        Grant(
            "EXECUTE", .function,
            "uuid_floor(timestamp with time zone)"),
        Grant(
            "EXECUTE", .function,
            "wake(smallint[])"),
        Grant("USAGE", .schema, "postbell"),
        Grant("INSERT", .table, "deliveries"),
        Grant("SELECT", .table, "deliveries"),
        Grant("SELECT", .table, "devices", column: "app"),
        Grant("SELECT", .table, "devices", column: "device_no"),
        Grant("SELECT", .table, "devices", column: "id"),
        Grant("SELECT", .table, "devices", column: "muted_kinds"),
        Grant("SELECT", .table, "devices", column: "principal_id"),
        Grant("SELECT", .table, "devices", column: "rerouted_at"),
        Grant("SELECT", .table, "devices", column: "route_no"),
        Grant("SELECT", .table, "devices", column: "status"),
        Grant("SELECT", .table, "devices", column: "success_due_at"),
        Grant("SELECT", .table, "devices", column: "tenant_id"),
        Grant("SELECT", .table, "devices", column: "token"),
        Grant("SELECT", .table, "devices", column: "token_registered_at"),
        Grant("SELECT", .table, "devices", column: "token_seq"),
        Grant("SELECT", .table, "erasures"),
        Grant("SELECT", .table, "hook_health"),
        Grant("SELECT", .table, "hooks"),
        Grant("SELECT", .table, "kinds"),
        Grant("SELECT", .table, "lane_health"),
        Grant("SELECT", .table, "lease_positions"),
        Grant("DELETE", .table, "leases"),
        Grant("INSERT", .table, "leases"),
        Grant("SELECT", .table, "leases"),
        Grant("UPDATE", .table, "leases", column: "open"),
        Grant("UPDATE", .table, "leases", column: "until"),
        Grant("SELECT", .table, "outbox"),
        Grant("DELETE", .table, "queue"),
        Grant("INSERT", .table, "queue"),
        Grant("SELECT", .table, "queue"),
        Grant("UPDATE", .table, "queue", column: "attempt"),
        Grant("SELECT", .table, "receipts"),
        Grant("SELECT", .table, "route_service"),
        Grant("SELECT", .table, "routes"),
        Grant("SELECT", .table, "schema_migrations"),
        Grant("SELECT", .table, "settings"),
        Grant("SELECT", .table, "settlements"),
        Grant("INSERT", .table, "settlements", column: "notification_id"),
        Grant("INSERT", .table, "settlements", column: "reason"),
        Grant("INSERT", .table, "settlements", column: "route_no"),
        Grant("INSERT", .table, "settlements", column: "status"),
        Grant("INSERT", .table, "settlements", column: "tenant_no"),
        Grant("SELECT", .table, "supersessions"),
        Grant("SELECT", .table, "tenants"),
        Grant("SELECT", .table, "worker_health"),
        Grant("INSERT", .table, "workers"),
        Grant("SELECT", .table, "workers"),
        Grant("UPDATE", .table, "workers", column: "heartbeat_at"),
        Grant("UPDATE", .table, "workers", column: "hooks"),
        Grant("UPDATE", .table, "workers", column: "lanes"),
        Grant("UPDATE", .table, "workers", column: "name"),
        Grant("UPDATE", .table, "workers", column: "routes"),
        Grant("UPDATE", .table, "workers", column: "stopped_at"),
        Grant("UPDATE", .table, "workers", column: "version"),
    ]
}
