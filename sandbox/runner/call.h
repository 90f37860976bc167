/* One call: a command with its streams, or a file on its way in or out. */
#ifndef CALL_H
#define CALL_H
#include "buffer.h"
#include "files.h"
#include "keep.h"
#include "link.h"
#include "observe.h"
#include "usage.h"
#include <stdint.h>
#include <sys/types.h>

/* A call ends this long after its program, even when something still holds its output open. */
#define GRACE_MS 500
/* While this much waits for the harness, nothing more is read from commands that are still in their head. */
#define FULL (1u << 20)

enum stage { FREE, COMMAND, ENDING, KILLING, FILE_OUT, FILE_IN };

struct call {
  enum stage stage;
  uint32_t id;
  pid_t supervisor;
  int in, out, err, status, ended, more, stuck, timed_out, killed, spawn_errno, spawn_where, wait_status;
  int64_t started, deadline, polite_until, due, kill_since;
  struct keep keep_out, keep_err;
  struct buffer input;
  int input_ends, tty, own;
  /* Read when the command has come to its end, and told with it; NULL for none. */
  char *kept;
  uint64_t kept_most;
  struct usage before;
  uint64_t peak_memory, peak_pids;
  struct file_call file;
  /* NULL where it is not asked for. */
  struct observer *observer;
};

int64_t now_us(void);
int64_t now_ms(void);
void shut(int *fd);
void note_usage(struct call *c, uint64_t memory, uint64_t pids);

/* begin.c */
void begin_command(struct call *c, const struct frame *f);

/* end.c: `alone` when no other command runs in the box. */
void begin_killing(struct call *c, int64_t now);
void step_command(struct call *c, int64_t now, int alone);

/* streams.c */
void read_stream(struct call *c, int *fd, struct keep *k, uint8_t type);
void write_input(struct call *c);
void read_status(struct call *c);
#endif
