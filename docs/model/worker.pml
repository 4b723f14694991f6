/* A worker. It works on one lease at a time: a second one of the same process is like one of another worker. */

#define MINE lease[my[w]]
#define HOLDS_ONE (my[w] != NOBODY)
#define UNSENT(t) (HOLDS_ONE && HAS(MINE.unsent, t) && aim[w] != t)
#define OVER(t) row[MINE.first + (t) / DEVICES].over
#define ME PWorker->w

/* The local deadline, which is never later than the database's. */
#define LOOKS_LAPSED (MINE.lapsed && !IS_SET(clock_steps) && !IS_MUTANT(no_deadline))

/* Claim: answered; carried out, and its answer lost; or given up on and still on its way. */
#define CLAIM(first, size, due) \
    :: STEP(!HOLDS_ONE && due, fired("claim"); int b = now.my[ME] = new_batch(ME); claim(b, first, size); \
            let_go_if_done(ME);)
#define MAY_LOSE_CLAIM (!HOLDS_ONE && lost_claim[w] == NOBODY && faults_left > 0)
#define CLAIM_LOST(first, size, due) \
    :: STEP(MAY_LOSE_CLAIM && due, fired("claim answer lost"); now.faults_left--; \
            int b = now.lost_claim[ME] = new_batch(ME); claim(b, first, size);)
#define CLAIM_LEFT_BEHIND \
    :: STEP(MAY_LOSE_CLAIM && zombie_claim == NOBODY && zombie_settle == NOBODY, claim_left_behind(ME);)

#define ADOPT \
    :: STEP(lost_claim[w] != NOBODY && lease[lost_claim[w]].live, \
            int b = now.lost_claim[ME]; now.lost_claim[ME] = NOBODY; adopt(b);) \
    :: STEP(IS_MUTANT(adopts_in_use) && HOLDS_ONE && MINE.live, adopt(now.my[ME]);)

/* Check and send. The last check is the local one: the lease leaves room for a request, the row is in time. Between it
   and the request a worker may be stopped (SIGSTOP) for as long as it takes. */
#define MAY_SEND(t) (UNSENT(t) && aim[w] == NOBODY && !LOOKS_LAPSED && OVER(t) != EXPIRED)
#define SEND(t) \
    :: STEP(MAY_SEND(t), look_at_deadline(ME); send(ME, t);) \
    :: STEP(MAY_SEND(t) && faults_left > 0, fired("pause"); now.faults_left--; look_at_deadline(ME); now.aim[ME] = t;)
#define SEND_AFTER_PAUSE \
    :: STEP(aim[w] != NOBODY, send(ME, now.aim[ME]);)

/* A re-check says that the notification is over, or the worker sees that its deadline has passed: a target falls out. */
#define FALL_OUT(t) \
    :: STEP(UNSENT(t) && !HAS(MINE.skipped, t) && \
            (OVER(t) == EXPIRED || (OVER(t) == CLOSED && MINE.live && !MINE.lapsed)), fall_out(ME, t);)

/* Back unsent: the lane is down or paused, or the worker stops; the lease leaves no room, or is known to be lost. */
#define RELEASE(t) \
    :: STEP(UNSENT(t) && faults_left > 0, fired("released"); now.faults_left--; \
            now.lease[now.my[ME]].unsent &= ~BIT(t);)
#define RELEASE_ALL \
    :: STEP(HOLDS_ONE && (MINE.unsent & ~(aim[w] == NOBODY -> 0 : BIT(aim[w]))) != 0 && (LOOKS_LAPSED || !MINE.live), \
            release_all(ME);)

/* Settle: a flush begins with what is known of one target, with that of all, or with what leaves without an answer. It is
   answered; carried out, and its answer lost; or its session is gone and it is on its way. It is repeated until its
   answer is heard. */
#define WRITING ((flush_rows[w] | flush_mask[w]) != 0)
#define SETTLE(guard, cost, begin) \
    :: STEP(HOLDS_ONE && guard, begin; write_flush(ME); flush_ended(ME); let_go_if_done(ME);) \
    :: STEP(HOLDS_ONE && guard && faults_left > cost, fired("settle answer lost"); now.faults_left--; begin; \
            write_flush(ME);) \
    :: STEP(HOLDS_ONE && guard && faults_left > cost && zombie_claim == NOBODY && zombie_settle == NOBODY, \
            now.faults_left--; begin; leave_settle_behind(ME);)
#define REPEAT SETTLE(WRITING, 0, fired("flush repeated"))
#define IS_FLYING(t) (!WRITING && HAS(MINE.flying, t))
#define ANSWER(t) \
    SETTLE(IS_FLYING(t), 0, begin_flush(ME, BIT(t), 1)) \
    SETTLE(IS_FLYING(t) && faults_left > 0, 1, now.faults_left--; begin_flush(ME, BIT(t), 0))
#define MISJUDGE(t) \
    :: STEP(HOLDS_ONE && (IS_MUTANT(unanswered_is_unsent) || IS_MUTANT(stop_forgets_flight)) && IS_FLYING(t) && \
            !HAS(MINE.unsent, t), misjudge(ME, t);)
#define SEVERAL_FLY ((MINE.flying & (MINE.flying - 1)) != 0)
#define ANSWER_ALL SETTLE(!WRITING && SEVERAL_FLY, 0, begin_flush(ME, now.lease[now.my[ME]].flying, 1))
#define LEAVES(p) (p < MINE.size && !HAS(MINE.left, p) && OF_POSITION(MINE.unsent | MINE.flying, p) == 0)
#define LEFTOVERS \
    SETTLE(!WRITING && ((MINE.skipped & ~MINE.told) != 0 || LEAVES(0) || (ROWS > 1 && LEAVES(1))), \
        0, begin_flush(ME, 0, 1))

#define RENEW \
    :: STEP(HOLDS_ONE && MINE.lapsed && (MINE.live || IS_MUTANT(renewal_revives)), renew(now.my[ME]);)

/* Any worker recovers; one that holds a lapsed lease itself renews that first. The recoverer counts the lapse as a death
   if it was connected since before the claim, or the owner of the lease is dead. */
#define RECOVERY_READS_FIRST (IS_MUTANT(recovery_blind) || IS_MUTANT(recovery_one_snapshot))
#define RECOVER(b) \
    :: STEP(lease[b].live && lease[b].lapsed && (!HOLDS_ONE || !MINE.lapsed) && !RECOVERY_READS_FIRST && \
            !(IS_MUTANT(recovery_by_owner_only) && lease[b].abandoned), \
            recover(b, ME, now.lease[b].known);) \
    :: STEP(lease[b].live && lease[b].lapsed && stale == NOBODY && RECOVERY_READS_FIRST, read_for_recovery(b);)
#define RECOVER_FROM_MEMORY \
    :: STEP(stale != NOBODY, recover_from_memory(ME);)

#define CRASH \
    :: STEP((HOLDS_ONE || lost_claim[w] != NOBODY) && faults_left > 0, fired("crash"); now.faults_left--; crash(ME);)

proctype Worker(byte w) {
end:
    do
    CLAIMS(CLAIM)
    CLAIMS(CLAIM_LOST)
    CLAIM_LEFT_BEHIND
    ADOPT
    EACH_TARGET(SEND)
    SEND_AFTER_PAUSE
    EACH_TARGET(FALL_OUT)
    EACH_TARGET(RELEASE)
    RELEASE_ALL
    EACH_TARGET(ANSWER)
    EACH_TARGET(MISJUDGE)
    ANSWER_ALL
    LEFTOVERS
    REPEAT
    RENEW
    EACH_LEASE(RECOVER)
    RECOVER_FROM_MEMORY
    CRASH
    od
}
