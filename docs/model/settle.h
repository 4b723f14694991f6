/* SettleStatement, and the way out of a position (PositionProgress.exit). */

/* What the ledger row of a target says about it. */
static void write_on_target(struct Lease *l, struct Row *row, int t)
{
    int d = t % DEVICES;
    if (HAS(FINAL(l), t)) {
        row->final |= BIT(d);
        return;
    }
    row->wait |= BIT(d);
    if (!HAS(l->unknown, t) && row->spent[d] < CEILING) row->spent[d]++;
}

/* `written`: one ledger row for each target of `set`, unless its id is there already. */
static void write_results(struct Lease *l, int set, int own)
{
    set &= ~(l->known | l->late);
    if (own) l->known |= set; else l->late |= set;
    for (int t = 0; t < TARGETS; t++) {
        if (!HAS(set, t)) continue;
        struct Row *row = &now.row[l->first + t / DEVICES];
        if (!own) fired(HAS(FINAL(l), t) ? "late final row" : "late row");
        if (!own || HAS(l->again, t)) row->excused |= BIT(t % DEVICES);
        if (row->end != OPEN) continue;
        if (HAS(FINAL(l), t)) row->reached |= BIT(t % DEVICES);
        if (own || mutant != late_final_ignored) write_on_target(l, row, t);
    }
}

/* Whether a target could be sent to as soon as the row is back: a retry whose wait is over, or nobody who waits. */
static int next_is_due(const struct Row *row)
{
    return (now.registered & ~row->final & ~row->wait) != 0 || (row->wait & ~row->final) == 0;
}

/* One with pages looks only for those who are left. */
static void starts_again(struct Row *row)
{
    row->looking = row->cursor != 0 || row->looking;
    row->cursor = row->crashes = 0;
}

/* A retry comes back when its wait is over; what was released at once, and keeps its place in the pages. */
static void tried_again(const struct Lease *l, int p)
{
    int r = l->first + p, released = OF_POSITION(RELEASED(l), p), again = OF_POSITION(l->again, p);
    struct Row *row = &now.row[r];
    if (again || mutant != prior_by_attempt) row->prior = 1;
    if (!released) starts_again(row);
    goes_back(r, released ? 1 : next_is_due(row));
}

/* A target's retry_at has come; the row in the queue is due by the earliest. */
static void wait_is_over(int r, int d)
{
    fired("wait over");
    now.row[r].wait &= ~BIT(d);
    now.row[r].due = now.row[r].queued;
}

static void next_page(int r, int after_device, int looking)
{
    fired(looking ? "page of a second look" : "page");
    now.row[r].prior = 1;
    now.row[r].cursor = after_device;
    now.row[r].looking = looking;
    now.row[r].crashes = 0;
    goes_back(r, 1);
}

/* Position `p` has all its targets accounted for. */
static void way_out(const struct Lease *l, int p)
{
    int r = l->first + p, released = OF_POSITION(RELEASED(l), p);
    struct Row *row = &now.row[r];
    if (HAS(l->verdict, p) || OF_POSITION(l->skipped, p)) {
        ends(r, row->over);
    } else if (l->page_end[p] && !released) {
        next_page(r, l->page_end[p], row->looking);
    } else if (row->cursor != 0 && !row->looking && !released && mutant != no_second_look) {
        next_page(r, 0, 1);
    } else if (released || OF_POSITION(l->again, p)) {
        tried_again(l, p);
    } else if (HAS(l->held, p)) {
        fired("held");
        row->prior = 1;
        starts_again(row);
        goes_back(r, mutant == held_is_due_at_once || next_is_due(row));
    } else {
        ends(r, OF_POSITION(l->failed, p) ? FAILED : DISPATCHED);
    }
}

/* The statement. It may be repeated at any time, by any session, with the same arguments. */
static void settle(int b, int rows, int mask)
{
    struct Lease *l = &now.lease[b];
    fired("settle");
    int own = l->live, before = whereabouts(), leaving = own ? l->open & mask : 0, rest = l->open & ~mask;
    if (mutant == settle_unfenced) leaving = mask;
    if (mutant == settle_not_idempotent) leaving = own ? mask : 0;
    if (!own) fired("fenced settle");
    write_results(l, rows, own);
    promise("fence", own || leaving == 0);
    promise("leaves_once", !own || (leaving & l->moved) == 0);
    for (int p = 0; p < l->size; p++) {
        if (!HAS(leaving, p)) continue;
        l->moved |= BIT(p);
        if (mutant == release_keeps_bit && OF_POSITION(RELEASED(l), p)) rest |= BIT(p);
        way_out(l, p);
    }
    if (own) {
        l->open = rest;
        l->live = rest != 0 && mutant != settle_deletes_lease;
    }
    promise("fence", own || before == whereabouts());
    audit();
}
