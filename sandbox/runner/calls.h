/* The calls in progress: commands with their streams, and files on their way in or out. */
#ifndef CALLS_H
#define CALLS_H
#include "link.h"
#include "observe.h"
#include <poll.h>
#include <sys/types.h>

#define MAX_CALLS 256
/* The descriptors of one call, in the order of calls_watch. */
#define CALL_FDS (4 + OBSERVER_FDS)

void calls_open(void);
/* Takes one request; every kind that begins a call is answered in the end by one EXIT or END. */
void calls_take(const struct frame *f);
/* Adds what is to be watched; answers how many, and the milliseconds until something is due (-1: nothing). */
int calls_watch(struct pollfd *fds, int *due);
void calls_step(void);
void calls_reap(void);
#endif
