/* Starting a command below a supervisor of its own. */
#ifndef SPAWN_H
#define SPAWN_H
#include <stdint.h>
#include <sys/types.h>

struct command {
  char **words;
  char **env;
  const char *folder;
  int tty, exact, observed;
};

/* What the supervisor writes into the status pipe: first why a start failed, or else how the command ended. */
struct notice {
  int32_t kind; /* NOTICE_* */
  int32_t value;
  int32_t more;
};
enum {
  NOTICE_FAILED = 1, /* value errno, more one of START_* */
  NOTICE_ENDED = 2,  /* value wait status, more 1 when descendants are left */
};
enum { START_FORK = 1, START_FOLDER = 2, START_PROGRAM = 3, START_TTY = 4, START_PIPES = 5 };

struct started {
  pid_t supervisor;
  int in, out, err, status, eye; /* -1 where there is none; with a terminal, in and out are its one end */
};

/* Before the runner closes itself to others. */
void spawn_open(void);
/* 0, or errno with *where set. */
int spawn(const struct command *c, int with_stdin, struct started *s, int *where);
#endif
