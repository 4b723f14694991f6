/* Claim, recover, adopt, renew, sweep: one function per statement of Sources/OutboxPostgres/Statements. */

/* A batch id that nobody knows: the worker makes it before it sends the claim. */
static int new_batch(int w)
{
    int b = 0;
    while (b < LEASES && now.lease[b].used) b++;
    /* a sequence after a failover: the number that this worker's unwritten settle has */
    if (mutant == batch_repeats && now.zombie_settle != NOBODY && !now.lease[now.zombie_settle].live
        && !now.lease[now.zombie_settle].abandoned) {
        b = now.zombie_settle;
        memset(&now.lease[b], 0, sizeof now.lease[b]);
    }
    promise("(the model has too few leases)", b < LEASES);
    now.lease[b].used = 1;
    return b;
}

/* Whether device `d` may be on the next page: live, and behind the cursor. */
static int is_ahead(const struct Row *row, int d)
{
    return HAS(now.registered, d) && d >= row->cursor;
}

/* Whether a device of the page is no target: after an earlier claim final, or waiting for its own retry. */
static int is_left_out(const struct Row *row, int d)
{
    return row->prior && HAS(row->final | row->wait, d);
}

/* The page of position `p`, with its targets. */
static void address(struct Lease *l, int p)
{
    struct Row *row = &now.row[l->first + p];
    int looked_at = 0, behind = 0;
    for (int d = 0; d < DEVICES && looked_at < page; d++) {
        if (!is_ahead(row, d) || (HAS(l->verdict, p) && mutant != closed_is_sent)) continue;
        looked_at++;
        behind = d + 1;
        if (is_left_out(row, d)) continue;
        promise("delivered_once", !HAS(row->reached, d));
        l->targets |= BIT(TARGET(p, d));
        if (row->spent[d] + 1 >= CEILING) l->last |= BIT(TARGET(p, d));
    }
    if (looked_at == page || row->looking) l->page_end[p] = behind;
    if (HAS(l->verdict, p) || !row->prior) return;
    /* others_due_at: whoever waits, and at the end of a second look whoever has waited */
    if (row->wait & ~row->final) l->held |= BIT(p);
    if (!row->looking || looked_at || mutant == end_overlooks_due) return;
    for (int d = 0; d < DEVICES; d++)
        if (HAS(now.registered, d) && row->spent[d] && !is_left_out(row, d)) {
            fired("due behind the cursor");
            l->held |= BIT(p);
        }
}

/* ClaimStatement: moves `size` rows from the queue into the lease `b`, and ends none. */
static void claim(int b, int first, int size)
{
    struct Lease *l = &now.lease[b];
    l->live = 1;
    l->first = first;
    l->size = size;
    l->open = BIT(size) - 1;
    l->before = ALL_WORKERS;
    for (int p = 0; p < size; p++) {
        struct Row *row = &now.row[first + p];
        row->queued = row->due = 0;
        if (row->over != OPEN) l->verdict |= BIT(p);
        address(l, p);
        /* an inner join: the worker hears nothing of an orphan, so no flush of it has that position */
        if (mutant == claim_drops_position && first + p == orphan) l->left |= BIT(p);
    }
    l->unsent = l->targets;
    audit();
}

/* The lease is deleted and what is open in it goes back; `counted`: as the death of a worker. */
static void all_open_back(int b, int counted)
{
    struct Lease *l = &now.lease[b];
    l->live = 0;
    for (int p = 0; p < l->size; p++) {
        if (!HAS(l->open, p)) continue;
        int r = l->first + p, is_alone = l->size == 1 || mutant == crash_budget_shared;
        l->moved |= BIT(p);
        if (counted && now.row[r].crashes < MAX_DEATHS) now.row[r].crashes++;
        if (counted && is_alone && now.row[r].crashes >= MAX_DEATHS) {
            fired("set aside");
            ends(r, SET_ASIDE);
        } else {
            if (mutant != recovery_forgets_prior) now.row[r].prior = 1;
            goes_back(r, 1);
        }
    }
    l->open = 0;
}

/* Targets of open positions: whom the worker may have sent to. */
static int open_targets(const struct Lease *l)
{
    int set = 0;
    for (int p = 0; p < l->size; p++)
        if (HAS(l->open, p)) set |= ALL_DEVICES << TARGET(p, 0);
    if (mutant == unknown_from_today) {
        int today = 0;
        for (int p = 0; p < l->size; p++) today |= now.registered << TARGET(p, 0);
        return set & today;
    }
    return set & l->targets;
}

/* An `unknown` row of batch `b` for each target of `set`. */
static void write_unknown(int b, int set)
{
    struct Lease *l = &now.lease[b];
    l->unknown |= set;
    for (int t = 0; t < TARGETS; t++) {
        if (!HAS(set, t)) continue;
        struct Row *row = &now.row[l->first + t / DEVICES];
        row->excused |= BIT(t % DEVICES);
        if (row->spent[t % DEVICES] < CEILING) row->spent[t % DEVICES]++;
    }
}

/* postbell.recover for one lapsed lease; `seen` are the ledger rows in the snapshot of its second statement. */
static void recover(int b, int w, int seen)
{
    struct Lease *l = &now.lease[b];
    fired("recovered");
    if (mutant != recovery_silent) write_unknown(b, open_targets(l) & ~seen);
    int owner_is_dead = l->abandoned && mutant != only_elders_count;
    all_open_back(b, (HAS(l->before, w) || owner_is_dead) && mutant != nobody_counts_deaths);
    audit();
    /* whoever lost that claim asks for it in vain */
    for (int v = 0; v < WORKERS; v++)
        if (now.lost_claim[v] == b && now.zombie_claim != b) now.lost_claim[v] = NOBODY;
    forget(b);
}

/* AdoptStatement: the lease of a claim whose answer was lost goes back unsent. */
static void adopt(int b)
{
    fired("adopted");
    if (mutant == lost_claim_counts_as_sent) write_unknown(b, open_targets(&now.lease[b]));
    all_open_back(b, 0);
    audit();
    forget(b);
}

/* RenewStatement: a lapsed lease that nobody has recovered is still ours. */
static void renew(int b)
{
    struct Lease *l = &now.lease[b];
    fired("renewed");
    if (mutant == renewal_revives) {
        l->live = 1;
        l->open = (BIT(l->size) - 1) & ~l->left;
    }
    if (l->live) l->lapsed = 0;
    audit();
}

/* SweepStatement: a row that is over ends without a claim. */
static void sweep(int r)
{
    fired("swept");
    now.row[r].queued = 0;
    ends(r, now.row[r].over);
    audit();
}

static void read_for_recovery(int b)
{
    now.stale = b;
    now.stale_set = mutant == recovery_blind ? now.lease[b].open : now.lease[b].known;
}

/* Two mutants: what a recovery has read, it acts on later. */
static void recover_from_memory(int w)
{
    int b = now.stale, set = now.stale_set;
    now.stale = NOBODY;
    now.stale_set = 0;
    if (mutant == recovery_blind) {
        now.lease[b].open = set;
        all_open_back(b, 0);
        audit();
        forget(b);
    } else if (now.lease[b].live && now.lease[b].lapsed) {
        recover(b, w, set);
    } else {
        forget(b);
    }
}
