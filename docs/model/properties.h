/* The promises, under the names that a run reports. README.md says where each is promised. */

#define RESULTS(l) ((l)->fine | (l)->again | (l)->failed | (l)->skipped)
#define SENT(l) ((l)->flying | (l)->fine | (l)->again | (l)->failed)
#define FINAL(l) ((l)->fine | (l)->failed | (l)->skipped)
/* Targets that are neither unsent nor sent nor skipped were given back. */
#define RELEASED(l) ((l)->targets & ~((l)->unsent | (l)->flying | RESULTS(l)))

/* After each statement of the database: each row is in exactly one place, and the ledger is true. */
static void audit(void)
{
    int places[ROWS] = {0};
    for (int b = 0; b < LEASES; b++) {
        struct Lease *l = &now.lease[b];
        for (int p = 0; l->live && p < l->size; p++)
            if (HAS(l->open, p)) places[l->first + p]++;
        promise("true_ledger", (l->known & l->unknown) == 0);
        promise("unknown_was_a_target", (l->unknown & ~l->targets) == 0);
        promise("unknown_has_a_cause", l->lapsed || (l->unknown & ~SENT(l)) == 0);
    }
    for (int r = 0; r < ROWS; r++) {
        promise("one_live_lease", places[r] <= 1);
        promise("one_place", places[r] + now.row[r].queued + (now.row[r].end != OPEN) == 1);
    }
}

/* Who is in the queue and who has ended: what a settle may change only when the lease is its own. */
static int whereabouts(void)
{
    int all = 0;
    for (int r = 0; r < ROWS; r++) all = all * 4 + now.row[r].queued * 2 + (now.row[r].end != OPEN);
    return all;
}

/* A request for a target of lease `b` leaves. */
static void request_leaves(int b, int target)
{
    struct Lease *l = &now.lease[b];
    struct Row *row = &now.row[l->first + target / DEVICES];
    int device = target % DEVICES;
    promise("claim_before_send", HAS(l->targets, target));
    promise("one_send_per_batch", !HAS(SENT(l), target));
    promise("nothing_after_closing", !HAS(l->verdict, target / DEVICES) && !HAS(l->skipped, target));
    promise("no_second_send", !HAS(row->sent, device) || HAS(row->excused, device));
    row->sent |= BIT(device);
}

/* Row `r` goes back into the queue. */
static void goes_back(int r, int due)
{
    promise("terminal_stays", now.row[r].end == OPEN);
    now.row[r].queued = 1;
    now.row[r].due = due;
}

/* Row `r` ends, for good and for a reason that holds; what is over has no more state than is looked at. */
static void ends(int r, int how)
{
    struct Row *row = &now.row[r];
    promise("terminal_stays", row->end == OPEN);
    promise("ended_rightly", how != DISPATCHED || now.churned || (now.registered & ~row->reached) == 0);
    promise("ended_rightly", how != FAILED || row->reached != 0);
    promise("ended_rightly", (how != CLOSED && how != EXPIRED) || row->over == how);
    /* Only what kills workers, or was in as many lost leases. Its neighbours in a lease can cost a row two: one in a
       full batch and one among suspects; from then on it is alone. */
    promise("neighbours_live",
        how != SET_ASIDE || r == poison || faults >= MAX_DEATHS - (poison == NOBODY ? 0 : 2));
    row->end = how;
    row->prior = row->due = row->crashes = row->cursor = row->looking = row->final = row->reached = row->wait = 0;
    for (int d = 0; d < DEVICES; d++) row->spent[d] = 0;
}

/* The number of a lease that nobody knows any more may be used again; until then it is as good as a UUID. */
static void forget(int b)
{
    struct Lease *l = &now.lease[b];
    if (!l->used || l->live || now.zombie_settle == b || now.zombie_claim == b || now.stale == b) return;
    for (int w = 0; w < WORKERS; w++)
        if (now.my[w] == b || now.lost_claim[w] == b) return;
    promise("every_send_recorded", (SENT(l) & ~(l->known | l->late | l->unknown)) == 0);
    memset(l, 0, sizeof *l);
}
