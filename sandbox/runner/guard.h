/*
 * Notices that a protected path is no longer the mount that the harness approved. A mount lies over a file or folder and
 * not over its name: whoever renames it on the host takes the mount along, and whoever replaces it takes the mount away.
 * Either leaves something unprotected under the old name.
 */
#ifndef GUARD_H
#define GUARD_H
#include <poll.h>

#define GUARD_FDS 2

void guard_open(void);
/* From now on this path must stay what it is now. Takes the text. */
void guard_add(char *path);
/* Always GUARD_FDS of them. */
int guard_watch(struct pollfd *fds);
/* After a poll: compares where the kernel told of something. */
void guard_hear(const struct pollfd *fds);
/* Compares now. True from the first difference on. */
int guard_lost(void);
/* What was found so far, without a look. */
int guard_was_lost(void);
/* UNGUARDED, with the paths that differ. */
void guard_tell(void);
#endif
