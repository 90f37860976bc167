/* What the box's cgroup says: version 1 and 2. */
#ifndef USAGE_H
#define USAGE_H
#include <stdint.h>

struct usage {
  uint64_t memory, memory_peak, memory_limit, pids, memory_kills, pids_refused;
};

void usage_open(void);
void usage_now(struct usage *u);
/* Only the two that move: cheap enough for a timer. */
void usage_sample(uint64_t *memory, uint64_t *pids);
#endif
