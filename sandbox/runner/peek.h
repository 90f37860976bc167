/*
 * Looking into the processes of commands, from the first process of the box: what a call's arguments point at, and who
 * is whose. Nothing is believed of what is read there; it may change while it is read.
 */
#ifndef PEEK_H
#define PEEK_H
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct peek {
  pid_t tid, tgid;
  int mem, error;
};

/* What is known of this thread; `fresh` where it was looked up just now. NULL where it is gone. */
struct peek *peek_at(pid_t tid, int *fresh);
void peek_forget(pid_t tid);
/* Bytes at this address; -1 with errno: EACCES or EPERM where it is closed to others, else the address is none. */
ssize_t peek_bytes(struct peek *p, uint64_t address, void *into, size_t size);
/* A text with its NUL; cut where it is longer. */
ssize_t peek_text(struct peek *p, uint64_t address, char *into, size_t size);

struct kin {
  pid_t tgid, parent, group, session;
};
/* False where it is gone. */
int peek_kin(pid_t pid, struct kin *k);
/* Whether it is this process or one below it. */
int peek_below(pid_t pid, pid_t root);
/* Its program and arguments with NULs between them, cut. */
size_t peek_words(pid_t pid, char *into, size_t size);

#define PLACE_MAX (2 * PATH_MAX + 64)

struct place {
  /* Absolute, without `.` and `..`. */
  char path[PLACE_MAX];
  /* Leads there for the runner, too. */
  char via[PLACE_MAX];
};

/* Where a name below a folder's descriptor leads (AT_FDCWD: the working folder). 0, or -1 with errno of peek_bytes. */
int peek_place(struct peek *p, int dir, uint64_t name, struct place *at);
int peek_descriptor(struct peek *p, int fd, struct place *at);
/* The same of a name that is known. */
void peek_resolve(struct peek *p, int dir, const char *name, struct place *at);
#endif
