/*
 * The way to granted networks: a port on the box's loopback, and the bridge behind it that is kept running. The port is
 * the runner's, so that it is always there and nobody else can have it: while the bridge is started again connections
 * wait. Commands are of the same user and may end the bridge; they gain nothing by it.
 */
#ifndef NETWORK_H
#define NETWORK_H
#include <stdint.h>
#include <sys/types.h>

/* A word behind the runner's own name: without it there is no port and no bridge. */
#define NETWORK_WORD "network"

/* False where the port cannot be had: then the box is not as planned. */
int network_open(void);
/* Of the bridge; 0 where none runs. */
pid_t network_pid(void);
/* Whether this ended child was the bridge. */
int network_ended(pid_t pid);
/* The runner ends everything in the box: the bridge, too, which is no fault of it. */
void network_struck(int64_t now);
/* Starts it where that is due, and looks whether it was stopped. */
void network_step(int64_t now);
/* The longest that may be slept: `due` (-1: for ever), or the next start. */
int network_due(int due, int64_t now);
#endif
