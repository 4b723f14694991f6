/* Who acts beside the workers: sessions that nobody waits for, the clock, producers, people and their devices. */

#define LATE_CLAIM(first, size, due) \
    :: STEP(zombie_claim != NOBODY && due, zombie_claims(first, size);)

/* By the database's clock. What nobody holds lapses for sure; what is held, only so often. */
#define LAPSE(b) \
    :: STEP(lease[b].live && !lease[b].lapsed && lease[b].abandoned, now.lease[b].lapsed = 1;) \
    :: STEP(lease[b].live && !lease[b].lapsed && !lease[b].abandoned && faults_left > 0, \
            fired("lapse"); now.faults_left--; now.lease[b].lapsed = 1;)

#define WAIT_IS_OVER(t) \
    :: STEP(HAS(row[(t) / DEVICES].wait, (t) % DEVICES), wait_is_over((t) / DEVICES, (t) % DEVICES);)

/* A supersession or a cancellation is committed; a deadline passes. */
#define IS_OVER(r) \
    :: STEP(faults_left > 0 && row[r].over == OPEN && row[r].end == OPEN, fired("superseded"); \
            now.faults_left--; now.row[r].over = CLOSED;) \
    :: STEP(faults_left > 0 && row[r].over == OPEN && row[r].end == OPEN, fired("expired"); \
            now.faults_left--; now.row[r].over = EXPIRED;)

/* Whether a route is paused, only its worker knows: any row in the queue that is over may be swept. */
#define SWEEP(r) \
    :: STEP(row[r].queued && row[r].over != OPEN, sweep(r);)

proctype Surroundings() {
end:
    do
    :: STEP(zombie_settle != NOBODY, zombie_settles();)
    CLAIMS(LATE_CLAIM)
    :: STEP(zombie_claim != NOBODY, zombie_claims(0, 0);)
    EACH_LEASE(LAPSE)
    EACH_TARGET(WAIT_IS_OVER)
    EACH_ROW(IS_OVER)
    EACH_ROW(SWEEP)
    :: STEP(IS_SET(churn) && !churned, fired("device changed"); now.churned = 1; now.registered ^= BIT(DEVICES - 1);)
    od
}

#if ROWS == 1
#define ALL_ENDED (row[0].end != OPEN)
#else
#define ALL_ENDED (row[0].end != OPEN && row[1].end != OPEN)
#endif

/* Nothing can happen any more and a row has not ended: this process is then not at an end, and the run says so. */
proctype End() {
    ALL_ENDED;
end:
    false
}
