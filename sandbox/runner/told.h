/*
 * The calls that an observed command's kernel tells of, and where their arguments stand. One table for the filter, which
 * decides what is told, and for the observer, which reads it.
 */
#ifndef TOLD_H
#define TOLD_H
#include <stdint.h>

/* When a call is told: what can be decided by its numbers costs nothing otherwise. */
enum tell {
  TELL_ALWAYS,
  TELL_OPEN,    /* not for folders and for what gives no content; the flags stand in `flags` */
  TELL_ADDRESS, /* where the fifth argument is one, or as much is sent as a question to DNS has */
  TELL_MESSAGE, /* but for the runner's own first one */
  TELL_HIDING,  /* prctl: what closes the process to others */
};

enum doing { DO_PATH, DO_FD, DO_OPEN, DO_OPEN2, DO_CREAT, DO_TWO, DO_EXEC, DO_CONNECT, DO_BIND, DO_LISTEN, DO_SEND, DO_MESSAGE, DO_MESSAGES, DO_SIGNAL, DO_HIDE, DO_CALL };

/* Bytes of a question to DNS: the least, and the most that are looked at. */
#define QUESTION_LEAST 17
#define QUESTION_MOST 512

/* Kinds of acts, as they are sent (protocol.h). */
enum act {
  ACT_READ = 'r',
  ACT_WRITE = 'w',
  ACT_MAKE = 'm',
  ACT_REMOVE = 'd',
  ACT_MODE = 'o',
  ACT_RUN = 'x',
  ACT_CONNECT = 'c',
  ACT_LISTEN = 'l',
  ACT_SEND = 's',
  ACT_CALL = 'k',
  ACT_NAME = 'n',
};

/* Of `dir`, `path`, `other` and `flags` the number of the argument, or -1. `other`: what appears, of two paths. */
struct told {
  int nr;
  const char *name;
  enum tell tell;
  enum doing doing;
  char act;
  int8_t dir, path, other_dir, other, flags;
};

const struct told *told_all(int *count);
/* NULL where it is none. */
const struct told *told_of(int nr);

/* Filters this process and all that it starts. The listener, or -1 with errno. A sendmsg with these two words behind its arguments passes untold. */
int told_filter(const uint32_t pass[2]);
#endif
