/* All there is: rows, leases, workers, statements on their way, and how many faults are left. */

typedef Row {
    bit queued;
    bit due;          /* queue.due_at <= now() */
    bit prior;        /* queue.prior */
    byte crashes;     /* queue.crashes; while the row is in a lease nothing else changes it */
    byte cursor;      /* queue.after_device: the device */
    bit looking;      /* and whether it is a second look */
    byte over;        /* CLOSED or EXPIRED: what producers, people or the clock have made of the notification */
    byte end;         /* how the dispatch ended */
    byte final;       /* devices with a final ledger row, as a claim sees them */
    byte wait;        /* devices with a ledger row whose retry_at lies ahead */
    byte spent[DEVICES];
    /* for the properties only */
    byte sent;        /* devices that a request was sent to */
    byte reached;     /* devices with a final ledger row */
    byte excused;     /* devices with a ledger row that is unknown, retry or late */
};
Row row[ROWS];

typedef Lease {
    bit used;         /* somebody knows the batch id */
    /* postbell.leases */
    bit live;         /* the row exists */
    bit lapsed;       /* until < now() */
    byte first;       /* ids: rows first, first + 1, … */
    byte size;        /* positions */
    byte open;
    byte targets;     /* t_pos, t_dev */
    byte before;      /* workers that were connected before claimed_at */
    /* what its worker knows (LeasedBatch) */
    bit abandoned;    /* nobody does any more */
    byte verdict;     /* positions whose verdict is not `send` */
    byte held;        /* positions with other targets that wait */
    byte page_end[ROWS]; /* by position: behind which device the next page begins; 0 when there is none */
    byte last;        /* targets whose next failure is their last */
    byte unsent;
    byte flying;      /* sent, and nothing known yet */
    byte fine;        /* delivered */
    byte again;       /* retry, or unanswered */
    byte failed;      /* the same at the ceiling */
    byte skipped;     /* fell out at a check */
    byte told;        /* ledger rows given to a flush */
    byte left;        /* positions given to a flush */
    /* postbell.deliveries of this batch */
    byte known;       /* written in time */
    byte late;
    byte unknown;     /* written by a recovery */
    /* for the properties only */
    byte moved;       /* positions that have left */
};
Lease lease[LEASES];

byte my[WORKERS] = NOBODY;          /* the lease that a worker works on */
byte aim[WORKERS] = NOBODY;         /* the target it was about to send to when it was stopped */
byte flush_rows[WORKERS];         /* the flush that it does not know to be written */
byte flush_mask[WORKERS];
byte lost_claim[WORKERS] = NOBODY;  /* a claim whose answer was lost */

/* Statements of sessions that are gone, not carried out yet: one settle or one claim. */
byte zombie_settle = NOBODY;
byte zombie_rows;
byte zombie_mask;
byte zombie_claim = NOBODY;

byte registered = ALL_DEVICES;    /* live devices of the person */
bit churned;

byte stale = NOBODY;              /* mutants only: what a recovery has read before it acts */
byte stale_set;

byte faults_left;             /* see report.h */
