/* The shape of a model: it is compiled for it, by -D for spin and for the C compiler alike. */
#ifndef WORKERS
#define WORKERS 2   /* 1 to 3 */
#endif
#ifndef ROWS
#define ROWS 2      /* notifications, each with one dispatch: 1 or 2 */
#endif
#ifndef DEVICES
#define DEVICES 2   /* targets of each: 1 or 2 */
#endif
#define LEASES 4    /* batch ids in use at the same time; a number is used again when nobody knows it any more */
#define CEILING 2   /* attempts per target */
#define MAX_DEATHS 3   /* POSTBELL_MAX_CRASHES */

#define NOBODY 9
#define TARGETS (ROWS * DEVICES)
#define ALL_DEVICES ((1 << DEVICES) - 1)
#define ALL_WORKERS ((1 << WORKERS) - 1)

/* Sets are bytes, one bit per member. A target of a lease is its position and its device. */
#define BIT(member) (1 << (member))
#define HAS(set, member) (((set) >> (member)) & 1)
#define TARGET(position, device) ((position) * DEVICES + (device))
#define OF_POSITION(set, position) (((set) >> ((position) * DEVICES)) & ALL_DEVICES)

/* How a dispatch ended. */
#define OPEN 0        /* it has not: it is in the queue or in a lease */
#define DISPATCHED 1
#define FAILED 2
#define CLOSED 3      /* superseded or cancelled */
#define EXPIRED 4
#define SET_ASIDE 5
