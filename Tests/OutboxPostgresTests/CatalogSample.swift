import Support

/// A notification of a shipped catalog, as a producer inserts it: what its golden files are made of.
struct CatalogSample: Sendable {
    /// The beginning of its files' names: the kind, and what is special about it.
    let name: String
    let kind: String
    /// JSON.
    let payload: String
    let key: String
    var thread: String?
    var subject: String?
    var badge: Int?

    private init(
        _ name: String, _ payload: String = "{}", key: String, thread: String? = nil, subject: String? = nil,
        badge: Int? = nil
    ) {
        self.name = name
        kind = name.split(separator: ",")[0].description
        self.payload = payload
        self.key = key
        self.thread = thread
        self.subject = subject
        self.badge = badge
    }

    /// All of a catalog: each kind at least once.
    static func all(of catalog: ShippedCatalog) -> [CatalogSample] {
        switch catalog {
        case .agentPlatform: agentPlatform
        case .teamChat: teamChat
        case .pluginHub: pluginHub
        }
    }

    private static func id(_ number: Int) -> String {
        "0196f6a1-0000-7000-8000-00000000000\(number)"
    }

    private static let session = "session:\(id(1))"
    private static let run = #""session_id": "\#(id(1))", "run_id": "\#(id(2))""#

    private static let agentPlatform =
        [
            CatalogSample(
                "approval_requested", #"{"approval_id": "\#(id(3))", "tool_name": "mail.send", \#(run)}"#,
                key: "approval.requested:\(id(3))", thread: session, subject: "approval:\(id(3))"),
            CatalogSample(
                "approval_requested,without-tool", #"{"approval_id": "\#(id(3))"}"#,
                key: "approval.requested:\(id(3))"),
            CatalogSample(
                "question_asked", #"{"question_id": "\#(id(3))", \#(run)}"#,
                key: "run.waiting_for_user:\(id(2)):\(id(3))", thread: session, subject: "question:\(id(3))"),
            CatalogSample(
                "device_invocation", #"{"invocation_id": "\#(id(3))", "tool_name": "calendar.read", \#(run)}"#,
                key: "device_invocation.created:\(id(3))", thread: session),
            CatalogSample(
                "run_failed", "{\(run)}", key: "run.failed:\(id(2))", thread: session, subject: "run:\(id(2))"),
        ] + schedules + [
            CatalogSample("call_finished", #"{"call_id": "\#(id(7))"}"#, key: "call.finished:\(id(7))"),
            CatalogSample(
                "ops_alert",
                #"{"signal": "queue_age", "severity": "critical", "reason_code": "above_limit", "release_id": "11.3"}"#,
                key: "ops.default.queue_age.4"),
            CatalogSample(
                "ops_alert,unknown-signal", #"{"signal": "moon_phase", "severity": "info"}"#,
                key: "ops.default.moon_phase.1"),
            CatalogSample("ops_recovered", #"{"signal": "queue_age"}"#, key: "ops.default.queue_age.4.recovered"),
            CatalogSample("test", key: "device.test:\(id(8)):1"),
        ]

    private static let occurrence = #""schedule_id": "\#(id(4))", "occurrence_id": "\#(id(5))""#
    private static let hour = #""scheduled_for": "2026-11-30T08:30:00+01:00""#
    private static let planned = #""schedule_title": "Weekly \"numbers\"", \#(hour)"#

    private static let schedules = [
        CatalogSample(
            "schedule_run_finished", #"{\#(occurrence), "status": "completed", \#(planned), \#(run)}"#,
            key: "schedule.run_accounted:\(id(5))", thread: session, subject: "run:\(id(2))"),
        CatalogSample(
            "schedule_run_finished,failed", #"{\#(occurrence), "status": "failed", \#(planned), \#(run)}"#,
            key: "schedule.run_accounted:\(id(5))", thread: session),
        CatalogSample(
            "schedule_run_finished,without-schedule", #"{\#(occurrence), "status": "cancelled", \#(run)}"#,
            key: "schedule.run_accounted:\(id(5))", thread: session),
        CatalogSample(
            "schedule_run_finished,unsafe-title",
            #"{\#(occurrence), "status": "completed", "schedule_title": "password: letmein", \#(hour)}"#,
            key: "schedule.run_accounted:\(id(5))"),
        CatalogSample(
            "schedule_occurrence_skipped", #"{\#(occurrence), "status": "skipped_overlap", \#(planned)}"#,
            key: "schedule.occurrence.skipped:\(id(5))"),
        CatalogSample(
            "schedule_occurrence_skipped,without-schedule", #"{\#(occurrence), "status": "authorization_failed"}"#,
            key: "schedule.occurrence.skipped:\(id(5))"),
    ]

    private static let message = #"{"message_id": "\#(id(6))"}"#

    private static let teamChat =
        ["message", "mention", "dm", "run_done", "run_failed", "input_needed"].map { kind in
            CatalogSample(
                kind, message, key: "\(kind):\(id(6)):ada", thread: id(1), subject: "thread:\(id(1)):ada", badge: 3)
        } + [
            CatalogSample("run_done,without-message", key: "run_done:\(id(2)):ada", thread: id(1), badge: 0),
            CatalogSample("security", key: "security:\(id(7)):ada", badge: 3),
            CatalogSample("admin", key: "admin:\(id(7)):ada", badge: 0),
            CatalogSample(
                "sync", #"{"cleared": ["\#(id(1))", "\#(id(2))"]}"#, key: "sync:\(id(1)):9:ada", badge: 2),
            CatalogSample("sync,nothing-cleared", key: "sync:\(id(1)):8:ada", badge: 0),
        ]

    private static let pluginHub = [
        CatalogSample(
            "code", #"{"code": "officer/core:mail-arrived", "n": 3, "id": 412}"#, key: "mail:412",
            thread: "officer/core", badge: 3),
        CatalogSample(
            "code,not-installed", #"{"code": "officerdev/music:12.3"}"#, key: "officerdev/music:12.3:e1",
            thread: "officerdev/music"),
        CatalogSample("test", key: "device.test:\(id(8)):1"),
    ]
}
