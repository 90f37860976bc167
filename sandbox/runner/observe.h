/*
 * Watching what a command does, before it is done: the kernel tells of each call that counts (told.h) and waits for a
 * word, which is always to go on, until a canary is touched. It is no wall: a process can change what it points at
 * between the look and the deed. That a canary was opened is told by inotify, too, which cannot be misled.
 */
#ifndef OBSERVE_H
#define OBSERVE_H
#include "buffer.h"
#include "seen.h"
#include <poll.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* The listener, and what tells of canaries. */
#define OBSERVER_FDS 2
#define OBSERVER_BOUND 32

enum seeing { SEEING_NOTHING, SEEING_SAMPLES, SEEING_CALLS };

struct canary {
  char kind; /* f file, s socket, a address */
  char *at;
  int there, watch;
  dev_t dev;
  ino_t ino;
};

struct observer {
  enum seeing by;
  /* Until the listener has come, the socket over which it does. */
  int fd, listening, notices;
  /* `hidden`: who closed itself to others last. */
  pid_t supervisor, first, hidden;
  int started, touched;
  struct seen *seen;
  struct canary *canaries;
  int canary_count;
  char **trees;
  int tree_count;
  char *words;
  size_t words_length;
  int64_t begun, sampled;
  /* Sockets that were given an address: who listens on one of them was told already. */
  struct {
    pid_t pid;
    int fd;
  } bound[OBSERVER_BOUND];
  int next_bound;
};

/* A field of the request: c a canary, w a tree whose files are counted by themselves. */
void observer_take(struct observer **o, const struct field *f);
/* Once all fields are there: what has to be before the command is. `words` with NULs between them. */
void observer_begin(struct observer *o, char **words, int64_t begun);
/* In the command itself, right before it becomes its program. */
void observer_join(int socket);
int observer_watch(const struct observer *o, struct pollfd *fds);
/* The longest that may be slept. */
int64_t observer_due(const struct observer *o);
/* Answers what waits; true from the first touch of a canary on: then nothing that the command began gets on. */
int observer_step(struct observer *o);
void observer_send(struct observer *o, uint32_t call);
void observer_end(struct observer **o);
#endif
