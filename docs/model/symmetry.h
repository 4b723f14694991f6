/* Workers are alike, and so are batch ids: of states that differ only in who is who, one is looked at. After each step
   leases and workers are put in order, and what names them is renamed. The promises name neither. */

static void rename_lease(unsigned char *name, int a, int b)
{
    if (*name == a) *name = b; else if (*name == b) *name = a;
}

static void swap_leases(int a, int b)
{
    struct Lease kept = now.lease[a];
    now.lease[a] = now.lease[b];
    now.lease[b] = kept;
    for (int w = 0; w < WORKERS; w++) {
        rename_lease(&now.my[w], a, b);
        rename_lease(&now.lost_claim[w], a, b);
    }
    rename_lease(&now.zombie_settle, a, b);
    rename_lease(&now.zombie_claim, a, b);
    rename_lease(&now.stale, a, b);
}

#define SWAP(array, a, b) { unsigned char kept = now.array[a]; now.array[a] = now.array[b]; now.array[b] = kept; }

static void swap_workers(int a, int b)
{
    SWAP(my, a, b)
    SWAP(aim, a, b)
    SWAP(flush_rows, a, b)
    SWAP(flush_mask, a, b)
    SWAP(lost_claim, a, b)
    for (int l = 0; l < LEASES; l++) {
        int set = now.lease[l].before, others = set & ~(BIT(a) | BIT(b));
        now.lease[l].before = others | HAS(set, a) << b | HAS(set, b) << a;
    }
}

/* Positive: worker `a` belongs behind worker `b`. */
static int compare_workers(int a, int b)
{
    int order = now.my[a] - now.my[b];
    if (!order) order = now.lost_claim[a] - now.lost_claim[b];
    if (!order) order = now.aim[a] - now.aim[b];
    for (int l = 0; l < LEASES && !order; l++) order = HAS(now.lease[l].before, a) - HAS(now.lease[l].before, b);
    return order;
}

static void make_canonical(void)
{
    for (int a = 1; a < LEASES; a++)
        for (int b = a; b > 0 && memcmp(&now.lease[b - 1], &now.lease[b], sizeof now.lease[b]) < 0; b--)
            swap_leases(b - 1, b);
    for (int a = 1; a < WORKERS; a++)
        for (int b = a; b > 0 && compare_workers(b - 1, b) > 0; b--) swap_workers(b - 1, b);
}
