/*
 * For a box that may be frozen: its input does not end when the harness does, so it ends itself when it has heard
 * nothing for LEASE_MS. Only a frame of the harness's puts that off; no command can reach the wire.
 */
#ifndef LEASE_H
#define LEASE_H
#include <stdint.h>

#define LEASE_MS 20000

/* The first word behind the runner's own name: without it there is no lease, and the end of the input is the end. */
#define LEASE_WORD "lease"

void lease_open(void);
void lease_heard(void);
/* The longest that may be slept: `due` (-1: for ever) or the next look at the clock. */
int lease_due(int due);
/* Whether nothing was heard for too long. */
int lease_over(int held);
#endif
