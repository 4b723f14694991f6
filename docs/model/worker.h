/* What a worker does in its own memory (DispatchState, LeasedBatch), and what its death leaves behind. */

/* All targets of position `p` are accounted for, and no flush has let it go. */
static int leaves(const struct Lease *l, int p)
{
    return p < l->size && !HAS(l->left, p) && OF_POSITION(l->unsent | l->flying, p) == 0;
}

static int leaving_positions(const struct Lease *l)
{
    int set = 0;
    for (int p = 0; p < l->size; p++)
        if (leaves(l, p)) set |= BIT(p);
    return set;
}

static int is_writing(int w) { return (now.flush_rows[w] | now.flush_mask[w]) != 0; }

/* Whether there is something to write: results that fell out, or positions that leave without a result. */
static int has_leftovers(int w)
{
    const struct Lease *l = &now.lease[now.my[w]];
    return (l->skipped & ~l->told) != 0 || leaving_positions(l) != 0;
}

/* Answers of `set` are known, and the next flush is begun. What a worker knows and has not written is the same for
   everybody else as what it does not know yet, so answers come with their flush. */
static void begin_flush(int w, int set, int is_fine)
{
    struct Lease *l = &now.lease[now.my[w]];
    l->flying &= ~set;
    if (is_fine) {
        l->fine |= set;
    } else if (l->last & set) {
        fired("ceiling");
        l->failed |= set;
    } else {
        fired("retry");
        l->again |= set;
    }
    now.flush_rows[w] = RESULTS(l) & ~l->told;
    now.flush_mask[w] = leaving_positions(l);
    l->told |= now.flush_rows[w];
    l->left |= now.flush_mask[w];
}

/* The flush is written: the worker heard it. */
static void flush_ended(int w)
{
    now.flush_rows[w] = now.flush_mask[w] = 0;
}

/* A worker whose positions have all left has nothing to do with the lease any more. */
static void let_go_if_done(int w)
{
    int b = now.my[w];
    struct Lease *l = &now.lease[b];
    if (is_writing(w) || l->unsent || l->flying || has_leftovers(w) || l->left != BIT(l->size) - 1) return;
    now.my[w] = NOBODY;
    l->abandoned = l->live;
    forget(b);
}

static void write_flush(int w)
{
    settle(now.my[w], now.flush_rows[w], now.flush_mask[w]);
}

/* The session is gone while the settle is on its way: the worker will repeat it, and the database carry it out. */
static void leave_settle_behind(int w)
{
    now.zombie_settle = now.my[w];
    now.zombie_rows = now.flush_rows[w];
    now.zombie_mask = now.flush_mask[w];
}

/* The worker has given up on a claim that the database has not carried out yet. */
static void claim_left_behind(int w)
{
    int b = new_batch(w);
    now.faults_left--;
    now.zombie_claim = now.lost_claim[w] = b;
    if (mutant == send_before_claim) {
        now.my[w] = b;
        now.lease[b].size = 1;
        now.lease[b].unsent = BIT(0);
    }
}

static void zombie_settles(void)
{
    int b = now.zombie_settle;
    fired("settle carried out later");
    settle(b, now.zombie_rows, now.zombie_mask);
    now.zombie_settle = NOBODY;
    now.zombie_rows = now.zombie_mask = 0;
    forget(b);
}

/* `size` is 0: it finds nothing, or the server has ended the session. */
static void zombie_claims(int first, int size)
{
    int b = now.zombie_claim, is_known = 0;
    now.zombie_claim = NOBODY;
    for (int w = 0; w < WORKERS; w++) {
        is_known |= now.lost_claim[w] == b;
        if (size == 0 && now.lost_claim[w] == b) now.lost_claim[w] = NOBODY;
    }
    if (size > 0) {
        fired("claim carried out later");
        now.lease[b].abandoned = !is_known;
        claim(b, first, size);
    }
    forget(b);
}

/* What a dead worker knew is in nobody's way, unless a settle of it is still to come. */
static void die_with(struct Lease *l)
{
    l->flying = SENT(l);
    l->fine = l->again = l->failed = l->skipped = l->unsent = l->told = l->left = l->verdict = l->held = l->last = 0;
    memset(l->page_end, 0, sizeof l->page_end);
}

/* kill -9, and a new process at once: it knows nothing, and has another owner id. */
static void crash(int w)
{
    int lost = now.lost_claim[w], held = now.my[w];
    for (int b = 0; b < LEASES; b++) now.lease[b].before &= ~BIT(w);
    now.aim[w] = now.lost_claim[w] = now.my[w] = NOBODY;
    flush_ended(w);
    if (lost != NOBODY) {
        now.lease[lost].abandoned = 1;
        forget(lost);
    }
    if (held != NOBODY) {
        now.lease[held].abandoned = 1;
        if (now.zombie_settle != held) die_with(&now.lease[held]);
        forget(held);
    }
}

static void send(int w, int target)
{
    int b = now.my[w];
    fired("send");
    request_leaves(b, target);
    now.lease[b].unsent &= ~BIT(target);
    now.lease[b].flying |= BIT(target);
    now.aim[w] = NOBODY;
    if (now.lease[b].first + target / DEVICES == poison) {
        fired("poison");
        crash(w);
    }
}

static void look_at_deadline(int w)
{
    promise("deadline", clock_steps || now.lease[now.my[w]].live || !now.lease[now.my[w]].targets);
}

static void fall_out(int w, int target)
{
    struct Lease *l = &now.lease[now.my[w]];
    fired("fell out at a check");
    l->skipped |= BIT(target);
    if (mutant != check_unheard) l->unsent &= ~BIT(target);
}

/* All that is unsent goes back, but for the target of a request that was about to leave when the worker stopped. */
static void release_all(int w)
{
    fired("released by the deadline");
    now.lease[now.my[w]].unsent &= now.aim[w] == NOBODY ? 0 : BIT(now.aim[w]);
}

/* Two mutants: a request that has left is taken for one that has not. */
static void misjudge(int w, int target)
{
    struct Lease *l = &now.lease[now.my[w]];
    if (mutant == unanswered_is_unsent) {
        l->unsent |= BIT(target);
    } else {
        l->flying &= ~BIT(target);
        l->again |= BIT(target);
        l->told |= BIT(target);
    }
}
