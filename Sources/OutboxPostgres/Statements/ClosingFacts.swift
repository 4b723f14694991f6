/// The facts of producers and apps that end a notification, as every statement that judges one reads them, so that none
/// lets through what another ends.
enum ClosingFacts {
    /// Branches of a CASE over the row `n` of the outbox, in this order: its subject was superseded; it was seen and
    /// its kind ends with that; its thread was erased. Each comes to the SQL expression that is given for it. What has
    /// neither subject nor thread costs no look-up, and the kinds are read once per statement.
    static func branches(superseded: String, seen: String, erased: String) -> String {
        """
        WHEN n.subject IS NOT NULL AND EXISTS (
            SELECT 1 FROM postbell.supersessions u
            WHERE u.tenant_id = n.tenant_id AND u.subject = n.subject AND u.at > n.created_at)
            THEN \(superseded)
        WHEN n.subject IS NOT NULL
            AND n.kind_no = ANY (ARRAY(SELECT k.kind_no FROM postbell.kinds k WHERE k.ends_when_seen))
            AND EXISTS (
                SELECT 1 FROM postbell.receipts r
                WHERE r.tenant_id = n.tenant_id
                    AND r.principal_id = n.principal_id
                    AND r.subject = n.subject
                    AND r.seen_at > n.created_at)
            THEN \(seen)
        WHEN n.thread IS NOT NULL AND EXISTS (
            SELECT 1 FROM postbell.erasures e
            WHERE e.tenant_id = n.tenant_id AND e.thread = n.thread AND e.at > n.created_at)
            THEN \(erased)
        """
    }

    /// The same where each comes to its reason.
    static let reasons = branches(superseded: "'superseded'", seen: "'seen'", erased: "'erased'")
}
