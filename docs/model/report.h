/* What a run is told by its environment, and what it says at its end. None of it is part of the state. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each puts one fault into the protocol; README.md says where it comes from. MUTANT in the environment names it. */
#define MUTANTS(name) \
    name(settle_unfenced) name(settle_not_idempotent) name(settle_deletes_lease) name(release_keeps_bit) \
    name(late_final_ignored) name(prior_by_attempt) name(recovery_forgets_prior) name(batch_repeats) \
    name(recovery_blind) name(recovery_one_snapshot) name(recovery_silent) name(unknown_from_today) \
    name(lost_claim_counts_as_sent) name(adopts_in_use) name(claim_drops_position) name(crash_budget_shared) \
    name(send_before_claim) name(closed_is_sent) name(check_unheard) name(no_deadline) name(renewal_revives) \
    name(no_second_look) name(end_overlooks_due) name(held_is_due_at_once) name(recovery_by_owner_only) \
    name(unanswered_is_unsent) name(stop_forgets_flight) name(nobody_counts_deaths) name(only_elders_count)

#define AS_CONSTANT(name) name,
#define AS_TEXT(name) #name,
enum mutant { real_protocol, MUTANTS(AS_CONSTANT) mutant_count };
static const char *mutant_names[] = {"", MUTANTS(AS_TEXT)};
static enum mutant mutant;


/* So many faults happen at most, of any kind, in any order: a death of a worker, a lapse, a pause, a lost answer, a
   release, a retry, the end of a notification. */
static int faults;
static int page = 9;             /* devices per claim */
static int poison = NOBODY;      /* the row that kills whoever sends it */
static int orphan = NOBODY;      /* the row whose notification is not to be seen */
static int churn;                /* 1: the second device is registered or revoked once, at any moment */
static int clock_steps;          /* 1: a lease may run out by the database's clock without its worker seeing it */

static const char *only;         /* the one promise to look at; null: all */
static int tracing;              /* replaying a trail: print the branches in order */

static const char *broken = "none";
static struct { const char *name; unsigned long times; } branches[64];

static void report(void)
{
    printf("broken: %s\n", broken);
    for (int i = 0; i < 64 && branches[i].name; i++)
        printf("fired: %lu %s\n", branches[i].times, branches[i].name);
    fflush(stdout);
}

static void read_number(const char *name, int *value)
{
    const char *text = getenv(name);
    if (text && *text) *value = atoi(text);
}

static void begin_run(void)
{
    const char *chosen = getenv("MUTANT");
    tracing = getenv("TRACE") != NULL;
    only = getenv("PROMISE");
    read_number("FAULTS", &faults);
    read_number("PAGE", &page);
    read_number("POISON", &poison);
    read_number("ORPHAN", &orphan);
    read_number("CHURN", &churn);
    read_number("CLOCK_STEPS", &clock_steps);
    for (int i = 1; chosen && *chosen && i < mutant_count; i++)
        if (strcmp(chosen, mutant_names[i]) == 0) mutant = i;
    if (chosen && *chosen && mutant == real_protocol) {
        fprintf(stderr, "there is no mutant named %s\n", chosen);
        exit(2);
    }
    atexit(report);
}

/* The branch `name` was taken; names are literals. */
static void fired(const char *name)
{
    int i = 0;
    while (i < 63 && branches[i].name && strcmp(branches[i].name, name) != 0) i++;
    branches[i].name = name;
    branches[i].times++;
    if (tracing) printf("step: %s\n", name);
}

/* A promise that does not hold ends the search: see STEP in postbell.pml. */
static int all_hold = 1;
static void promise(const char *name, int condition)
{
    if (condition || (only && strcmp(only, name) != 0)) return;
    if (all_hold) broken = name;
    all_hold = 0;
}
