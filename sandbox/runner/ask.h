/*
 * What a command may ask of the harness: one request and one answer over a socket in /run. Nothing said here is
 * believed; the harness judges it like any other proposal.
 */
#ifndef ASK_H
#define ASK_H
#include "link.h"
#include <poll.h>

#define ASK_SOCKET "/run/harness.sock"
/* The listening socket and those who wait. */
#define ASK_FDS 9

/* Begins to listen; without it nobody can ask. */
void ask_open(void);
/* An answer from the harness, for the one who asked. */
void ask_answer(const struct frame *f);
int ask_watch(struct pollfd *fds);
void ask_step(void);
#endif
