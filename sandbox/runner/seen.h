/* What was seen of one command, within bounds: a flood is counted and not kept. */
#ifndef SEEN_H
#define SEEN_H
#include "told.h"
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct seen;

/* What is kept has bounds by its kind: what floods one leaves room in the others. */
enum room { ROOM_TREE, ROOM_SCRATCH, ROOM_FILES, ROOM_SOCKETS, ROOM_CALLS, ROOMS };

/* NULL without memory. */
struct seen *seen_new(void);
void seen_free(struct seen *s);
/* `words` with NULs between them. `needed`: on the way to a touch, beyond the bounds too. */
void seen_process(struct seen *s, pid_t pid, pid_t parent, const char *words, size_t length, uint64_t at, int needed);
int seen_knows(const struct seen *s, pid_t pid);
void seen_act(struct seen *s, enum room room, char kind, pid_t pid, const void *body, size_t length, uint64_t at);
/* Whether these are the words that this process was seen with last. */
int seen_same(const struct seen *s, pid_t pid, const char *words, size_t length);
/* The one touch: number of the canary, process, time, path. */
void seen_touch(struct seen *s, const void *body, size_t length);
/* SEEN frames of this call. */
void seen_send(const struct seen *s, uint32_t call);
#endif
