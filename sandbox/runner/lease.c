#include "lease.h"
#include "call.h"

#define LOOK_MS 500
/*
 * While it is held a box may be frozen for days, which the clock counts and it did not live: of one look to the next
 * no more than this is taken off. Commands that starve the runner of its turns gain this factor, and no more.
 */
#define MOST_HELD_MS 2000

static int leased;
static int64_t left, looked;

void lease_open(void) {
  leased = 1;
  lease_heard();
}

void lease_heard(void) {
  left = LEASE_MS;
  looked = now_ms();
}

int lease_due(int due) {
  if (!leased) return due;
  return due < 0 || due > LOOK_MS ? LOOK_MS : due;
}

int lease_over(int held) {
  if (!leased) return 0;
  int64_t now = now_ms(), passed = now - looked;
  looked = now;
  left -= held && passed > MOST_HELD_MS ? MOST_HELD_MS : passed;
  return left < 0;
}
