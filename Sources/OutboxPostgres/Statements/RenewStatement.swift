/// Extends leases from now on; a lapsed one that nobody has recovered is still ours.
///
/// Parameters: $1 uuid[] batches, $2 uuid owner, $3 interval life. Result: `batch` uuid, one row per lease that is
/// still ours.
enum RenewStatement {
    static let name = "renew"

    static let text = """
        UPDATE postbell.leases SET until = now() + $3::interval
        WHERE batch = ANY ($1::uuid[]) AND owner = $2::uuid RETURNING batch
        """
}
