/*
 * Postbell's protocol: claim, check, send, settle, renew, recover, adopt. README.md beside this file says what stands
 * for what; scripts/model runs it.
 *
 * One STEP is one statement of the database, or one step of a worker in its own memory; between two of them anything
 * may happen. Here is who may do what when. What it does is C: statements.h and settle.h for the SQL, worker.h for
 * the worker, properties.h for what has to hold.
 */
#include "settings.h"
#include "state.pml"

c_decl {
\#include "settings.h"
\#include "report.h"
};
c_code {
\#include "properties.h"
\#include "statements.h"
\#include "settle.h"
\#include "worker.h"
\#include "symmetry.h"
};

#define STEP(guard, ...) \
    d_step { guard -> c_code { __VA_ARGS__ make_canonical(); }; if :: c_expr { all_hold } :: else -> assert(false) fi }
#define IS_MUTANT(name) c_expr { mutant == name }
#define IS_SET(setting) c_expr { setting }
#define HAS_POISON c_expr { poison != NOBODY }

#if TARGETS == 4
#define EACH_TARGET(option) option(0) option(1) option(2) option(3)
#elif TARGETS == 2
#define EACH_TARGET(option) option(0) option(1)
#else
#define EACH_TARGET(option) option(0)
#endif
#if ROWS == 2
#define EACH_ROW(option) option(0) option(1)
#else
#define EACH_ROW(option) option(0)
#endif
#if LEASES == 5
#define EACH_LEASE(option) option(0) option(1) option(2) option(3) option(4)
#elif LEASES == 4
#define EACH_LEASE(option) option(0) option(1) option(2) option(3)
#else
#define EACH_LEASE(option) option(0) option(1) option(2)
#endif

/* Rows that one claim may take: due, and of one crash class; with two crashes or more a row is alone. */
#define DUE(r) (row[r].queued && row[r].due)
#if ROWS == 1
#define CLAIMS(option) option(0, 1, DUE(0))
#else
#define ONE_CLASS (row[0].crashes == row[1].crashes && row[0].crashes < 2)
#define CLAIMS(option) option(0, 1, DUE(0)) option(1, 1, DUE(1)) \
    option(0, 2, DUE(0) && DUE(1) && (ONE_CLASS || IS_MUTANT(crash_budget_shared)))
#endif
#include "worker.pml"
#include "surroundings.pml"

init {
    d_step {
        c_code {
            begin_run();
            now.faults_left = faults;
            for (int r = 0; r < ROWS; r++) {
                now.row[r].queued = now.row[r].due = 1;
                if (r == orphan) now.row[r].over = CLOSED;
            }
        }
    };
    if
    :: skip
    :: IS_SET(churn) -> registered = ALL_DEVICES & ~BIT(DEVICES - 1)
    fi;
    atomic {
        run Worker(0);
#if WORKERS > 1
        run Worker(1);
#endif
#if WORKERS > 2
        run Worker(2);
#endif
        run Surroundings();
        run End()
    }
}

/* No fairness is assumed, and there is no way to go round in circles: faults are limited, so from some state on there
   are no more. A row that cannot end is a state without a way on (End) or a circle (this formula). */
ltl every_row_ends { <> ALL_ENDED }
