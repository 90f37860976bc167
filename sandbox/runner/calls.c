#define _GNU_SOURCE
#include "calls.h"
#include "buffer.h"
#include "files.h"
#include "keep.h"
#include "mounts.h"
#include "protocol.h"
#include "spawn.h"
#include "tree.h"
#include "usage.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A call ends this long after its program, even when something still holds its output open. */
#define GRACE_MS 500
/* From the polite signal to the other one. */
#define POLITE_MS 2000
/* A tree that is not gone by then is the host's to end: it removes the container. */
#define STUCK_MS 3000
#define SAMPLE_MS 100
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
  int input_ends, tty;
  struct usage before;
  uint64_t peak_memory, peak_pids;
  struct file_call file;
};

static struct call calls[MAX_CALLS];
static int64_t sampled;

static int64_t now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static int64_t now_ms(void) { return now_us() / 1000; }

void calls_open(void) {
  for (int i = 0; i < MAX_CALLS; i++) calls[i].in = calls[i].out = calls[i].err = calls[i].status = -1;
}

static struct call *find(uint32_t id) {
  for (int i = 0; i < MAX_CALLS; i++)
    if (calls[i].stage != FREE && calls[i].id == id) return &calls[i];
  return NULL;
}

static struct call *fresh(uint32_t id, enum stage stage) {
  for (int i = 0; i < MAX_CALLS; i++) {
    struct call *c = &calls[i];
    if (c->stage != FREE) continue;
    memset(c, 0, sizeof *c);
    c->stage = stage;
    c->id = id;
    c->in = c->out = c->err = c->status = -1;
    c->started = now_us();
    c->deadline = c->polite_until = c->due = -1;
    return c;
  }
  return NULL;
}

static void shut(int *fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

static int running(void) {
  int count = 0;
  for (int i = 0; i < MAX_CALLS; i++) count += calls[i].supervisor > 0;
  return count;
}

static void observe(struct call *c, uint64_t memory, uint64_t pids) {
  if (memory > c->peak_memory) c->peak_memory = memory;
  if (pids > c->peak_pids) c->peak_pids = pids;
}

/* ---- beginning ---- */

/* The runner's own environment, which is the container's, with the call's values over it. */
static char **environment(char **given, int count) {
  int base = 0, kept = 0;
  while (environ[base] != NULL) base++;
  char **env = calloc((size_t)(base + count + 1), sizeof *env);
  if (env == NULL) _exit(71);
  for (int i = 0; i < base; i++) {
    size_t name = strcspn(environ[i], "=") + 1;
    int replaced = 0;
    for (int j = 0; j < count; j++) replaced |= strncmp(environ[i], given[j], name) == 0;
    if (!replaced) env[kept++] = environ[i];
  }
  for (int j = 0; j < count; j++) env[kept++] = given[j];
  return env;
}

static void add_text(char ***list, int *count, char *text) {
  *list = realloc(*list, (size_t)(*count + 2) * sizeof **list);
  if (*list == NULL) _exit(71);
  (*list)[(*count)++] = text;
  (*list)[*count] = NULL;
}

static void free_texts(char **list, int count) {
  for (int i = 0; i < count; i++) free(list[i]);
  free(list);
}

static void begin_command(struct call *c, const struct frame *f) {
  char **words = NULL, **given = NULL, *folder = NULL;
  int word_count = 0, given_count = 0;
  uint64_t head = 0, tail = 0, ms = 0, flags = 0;
  struct field field;
  for (const unsigned char *at = f->payload; next_field(&at, f->end, &field);) {
    if (field.name == 'a') add_text(&words, &word_count, field_text(&field));
    else if (field.name == 'e') add_text(&given, &given_count, field_text(&field));
    else if (field.name == 'd' && folder == NULL) folder = field_text(&field);
    else if (field.name == 't') ms = field_number(&field);
    else if (field.name == 'h') head = field_number(&field);
    else if (field.name == 'l') tail = field_number(&field);
    else if (field.name == 'f') flags = field_number(&field);
  }
  keep_start(&c->keep_out, head, tail);
  keep_start(&c->keep_err, head, tail);
  usage_now(&c->before);
  c->tty = (flags & EXEC_TTY) != 0;
  if (ms > 0) c->deadline = now_ms() + (int64_t)ms;
  char **env = environment(given, given_count);
  struct command command = {words, env, folder == NULL ? "/" : folder, c->tty};
  struct started s = {0, -1, -1, -1, -1};
  if (word_count == 0) c->spawn_errno = EINVAL, c->spawn_where = START_PROGRAM;
  else if (mounts_changed()) c->spawn_errno = ESTALE, c->spawn_where = START_PIPES;
  else c->spawn_errno = spawn(&command, (flags & EXEC_STDIN) != 0, &s, &c->spawn_where);
  if (c->spawn_errno == 0) {
    c->supervisor = s.supervisor;
    c->in = s.in, c->out = s.out, c->err = s.err, c->status = s.status;
  } else c->ended = 1;
  free(env);
  free(folder);
  free_texts(words, word_count);
  free_texts(given, given_count);
}

/* ---- ending ---- */

static void send_tail(uint8_t type, const struct call *c, const struct keep *k) {
  const unsigned char *run[2];
  size_t length[2];
  keep_tail(k, run, length);
  for (int i = 0; i < 2; i++)
    if (length[i] > 0) link_send(type, c->id, run[i], length[i]);
}

/*
 * EXIT: c exit code or s signal; E errno and W where, of a start that failed; t timed out; k processes that had to
 * be killed; o and e all bytes of stdout and stderr, O and R those that were dropped; m peak memory, p peak pids;
 * x kills by the memory limit, l starts refused by the pids limit; u microseconds; z the tree could not be ended.
 */
static void finish_command(struct call *c) {
  struct buffer b = {0};
  struct usage after;
  usage_now(&after);
  observe(c, after.memory, after.pids);
  if (after.memory_peak > c->before.memory_peak) observe(c, after.memory_peak, 0);
  send_tail(REP_OUT_TAIL, c, &c->keep_out);
  send_tail(REP_ERR_TAIL, c, &c->keep_err);
  if (c->spawn_errno != 0) {
    put_field_number(&b, 'E', (uint64_t)c->spawn_errno);
    put_field_number(&b, 'W', (uint64_t)c->spawn_where);
  } else if (WIFSIGNALED(c->wait_status)) put_field_number(&b, 's', (uint64_t)WTERMSIG(c->wait_status));
  else put_field_number(&b, 'c', (uint64_t)WEXITSTATUS(c->wait_status));
  put_field_number(&b, 't', (uint64_t)c->timed_out);
  put_field_number(&b, 'k', (uint64_t)c->killed);
  put_field_number(&b, 'o', c->keep_out.total);
  put_field_number(&b, 'e', c->keep_err.total);
  put_field_number(&b, 'O', keep_lost(&c->keep_out));
  put_field_number(&b, 'R', keep_lost(&c->keep_err));
  put_field_number(&b, 'm', c->peak_memory);
  put_field_number(&b, 'p', c->peak_pids);
  put_field_number(&b, 'x', after.memory_kills - c->before.memory_kills);
  put_field_number(&b, 'l', after.pids_refused - c->before.pids_refused);
  put_field_number(&b, 'u', (uint64_t)(now_us() - c->started));
  put_field_number(&b, 'z', (uint64_t)c->stuck);
  link_send(REP_EXIT, c->id, buffer_at(&b), buffer_used(&b));
  buffer_free(&b);
  shut(&c->in), shut(&c->out), shut(&c->err), shut(&c->status);
  keep_free(&c->keep_out), keep_free(&c->keep_err);
  buffer_free(&c->input);
  c->stage = FREE;
  c->supervisor = 0;
}

/*
 * Alone in the box, the tree is ended at a stroke: no bomb outruns it. Beside other calls it is hunted; a supervisor
 * that a command has stopped is ended too, then what was below it falls to the runner.
 */
static void kill_tree(struct call *c, int64_t now) {
  int below = signal_below(c->supervisor, SIGKILL);
  if (below > c->killed) c->killed = below;
  if (running() == 1) kill(-1, SIGKILL);
  else if (now - c->kill_since >= GRACE_MS) kill(c->supervisor, SIGKILL);
}

static void begin_killing(struct call *c, int64_t now) {
  if (c->stage == KILLING) return;
  c->stage = KILLING;
  c->kill_since = c->due = now;
}

static void step_command(struct call *c, int64_t now) {
  int closed = c->out < 0 && c->err < 0;
  if (c->deadline >= 0 && now >= c->deadline && !c->ended) {
    c->deadline = -1;
    c->timed_out = 1;
    c->polite_until = now + POLITE_MS;
    signal_below(c->supervisor, SIGTERM);
  }
  if (c->polite_until >= 0 && now >= c->polite_until) c->polite_until = -1, begin_killing(c, now);
  if (c->stage == COMMAND && c->ended) {
    c->stage = ENDING;
    c->due = now + GRACE_MS;
  }
  /* What waits for a slow harness is not lost to the clock; but who still writes is ended all the same. */
  int over = (c->stage == ENDING || c->stage == KILLING) && c->supervisor == 0;
  if (over && !closed && link_waiting() >= FULL) c->due = now + GRACE_MS;
  if (c->stage == ENDING && (closed || now >= c->due)) {
    if (c->supervisor == 0) finish_command(c);
    else if (c->more || now >= c->due) begin_killing(c, now);
  }
  if (c->stage == KILLING && now >= c->due) {
    if (c->supervisor == 0 && (closed || now - c->kill_since >= GRACE_MS)) finish_command(c);
    else if (c->supervisor == 0) c->due = now + 10;
    else if (now - c->kill_since >= STUCK_MS) c->stuck = 1, finish_command(c);
    else kill_tree(c, now), c->due = now + 10;
  }
}

/* ---- streams ---- */

static void read_stream(struct call *c, int *fd, struct keep *k, uint8_t type) {
  static unsigned char chunk[262144];
  for (int rounds = 0; rounds < 8; rounds++) {
    if (k->total < k->head && link_waiting() >= FULL) return;
    ssize_t n = read(*fd, chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {
      shut(fd);
      return;
    }
    size_t front = keep_add(k, chunk, (size_t)n);
    if (front > 0) link_send(type, c->id, chunk, front);
    if ((size_t)n < sizeof chunk / 4) return;
  }
}

static void write_input(struct call *c) {
  uint64_t taken = 0;
  while (c->in >= 0 && buffer_used(&c->input) > 0) {
    ssize_t n = write(c->in, buffer_at(&c->input), buffer_used(&c->input));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    if (n < 0) {
      taken += buffer_used(&c->input);
      buffer_take(&c->input, buffer_used(&c->input));
      shut(&c->in);
      break;
    }
    buffer_take(&c->input, (size_t)n);
    taken += (uint64_t)n;
  }
  if (c->input_ends && buffer_used(&c->input) == 0 && !c->tty) shut(&c->in);
  if (taken == 0) return;
  struct buffer b = {0};
  put_field_number(&b, 'n', taken);
  link_send(REP_CREDIT, c->id, buffer_at(&b), buffer_used(&b));
  buffer_free(&b);
}

static void read_status(struct call *c) {
  struct notice n;
  for (ssize_t got; (got = read(c->status, &n, sizeof n)) != 0;) {
    if (got < 0 && errno == EINTR) continue;
    if (got != sizeof n) return;
    if (n.kind == NOTICE_FAILED) c->spawn_errno = n.value, c->spawn_where = n.more;
    else c->wait_status = n.value, c->more = n.more;
    c->ended = 1;
  }
  shut(&c->status);
}

static void step_file(struct call *c) {
  if (c->stage == FILE_OUT)
    while (link_waiting() < FULL && file_read_more(&c->file, c->id))
      if (c->file.finished) break;
  if (c->file.finished) c->stage = FREE;
}

/* ---- the outside ---- */

static void resize(struct call *c, const struct frame *f) {
  struct winsize size = {24, 80, 0, 0};
  struct field field;
  for (const unsigned char *at = f->payload; next_field(&at, f->end, &field);)
    if (field.name == 'c') size.ws_col = (unsigned short)field_number(&field);
    else if (field.name == 'r') size.ws_row = (unsigned short)field_number(&field);
  if (c->tty && c->in >= 0) ioctl(c->in, TIOCSWINSZ, &size);
}

static void send_signal(struct call *c, const struct frame *f) {
  struct field field;
  const unsigned char *at = f->payload;
  int sig = next_field(&at, f->end, &field) ? (int)field_number(&field) : SIGKILL;
  if (c->supervisor == 0) return;
  if (sig == SIGKILL) begin_killing(c, now_ms());
  else signal_below(c->supervisor, sig);
}

void calls_take(const struct frame *f) {
  struct call *c = find(f->call);
  switch (f->type) {
  case REQ_EXEC:
  case REQ_READ:
  case REQ_WRITE:
    if (c != NULL) break;
    c = fresh(f->call, f->type == REQ_EXEC ? COMMAND : f->type == REQ_READ ? FILE_OUT : FILE_IN);
    if (c == NULL) file_end(f->call, EAGAIN, "too many calls at once");
    else if (f->type == REQ_EXEC) begin_command(c, f);
    else if (f->type == REQ_READ) file_read_begin(&c->file, f);
    else file_write_begin(&c->file, f);
    break;
  case REQ_STDIN:
    if (c != NULL && c->stage == FILE_IN) file_write_more(&c->file, f);
    else if (c != NULL && c->in >= 0) buffer_add(&c->input, f->payload, (size_t)(f->end - f->payload));
    break;
  case REQ_STDIN_END:
    if (c != NULL && c->stage == FILE_IN) file_write_end(&c->file, f->call);
    else if (c != NULL) c->input_ends = 1;
    break;
  case REQ_KILL:
    if (c != NULL) send_signal(c, f);
    break;
  case REQ_RESIZE:
    if (c != NULL) resize(c, f);
    break;
  default: file_once(f);
  }
}

static void watch(struct pollfd **next, int fd, short events) {
  (*next)->fd = fd;
  (*next)->events = events;
  ++*next;
}

int calls_watch(struct pollfd *fds, int *due) {
  struct pollfd *next = fds;
  int64_t now = now_ms(), soonest = -1;
  int full = link_waiting() >= FULL;
  for (int i = 0; i < MAX_CALLS; i++) {
    struct call *c = &calls[i];
    /* A file has more to send as soon as there is room; no descriptor tells of that. */
    if (c->stage == FILE_OUT && !full) soonest = now;
    if (c->stage == FREE || c->stage == FILE_IN || c->stage == FILE_OUT) continue;
    if (c->in >= 0 && buffer_used(&c->input) > 0) watch(&next, c->in, POLLOUT);
    if (c->out >= 0 && !(full && c->keep_out.total < c->keep_out.head)) watch(&next, c->out, POLLIN);
    if (c->err >= 0 && !(full && c->keep_err.total < c->keep_err.head)) watch(&next, c->err, POLLIN);
    if (c->status >= 0) watch(&next, c->status, POLLIN);
    int64_t times[4] = {c->ended ? -1 : c->deadline, c->polite_until, c->due, c->stage == COMMAND ? sampled + SAMPLE_MS : -1};
    for (int t = 0; t < 4; t++)
      if (times[t] >= 0 && (soonest < 0 || times[t] < soonest)) soonest = times[t];
  }
  *due = soonest < 0 ? -1 : soonest <= now ? 0 : (int)(soonest - now);
  return (int)(next - fds);
}

static void sample(int64_t now) {
  uint64_t memory, pids;
  if (now - sampled < SAMPLE_MS) return;
  sampled = now;
  usage_sample(&memory, &pids);
  for (int i = 0; i < MAX_CALLS; i++)
    if (calls[i].supervisor > 0) observe(&calls[i], memory, pids);
}

void calls_step(void) {
  int64_t now = now_ms();
  if (running() > 0) sample(now);
  for (int i = 0; i < MAX_CALLS; i++) {
    struct call *c = &calls[i];
    if (c->stage == FREE) continue;
    if (c->stage == FILE_OUT || c->stage == FILE_IN) {
      step_file(c);
      continue;
    }
    write_input(c);
    if (c->status >= 0) read_status(c);
    if (c->out >= 0) read_stream(c, &c->out, &c->keep_out, REP_OUT);
    if (c->err >= 0) read_stream(c, &c->err, &c->keep_err, REP_ERR);
    step_command(c, now);
  }
}

/* A supervisor that a command killed leaves its tree to the runner, which ends it as strays. */
void calls_reap(void) {
  pid_t kept[MAX_CALLS];
  int count = 0, strays = 0, status;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    int known = 0;
    for (int i = 0; i < MAX_CALLS; i++) {
      struct call *c = &calls[i];
      if (c->supervisor != pid) continue;
      known = 1;
      c->supervisor = 0;
      if (c->status >= 0) read_status(c);
      if (!c->ended) c->ended = 1, c->wait_status = status;
      strays |= WIFSIGNALED(status);
    }
    strays |= !known;
  }
  if (!strays) return;
  for (int i = 0; i < MAX_CALLS; i++)
    if (calls[i].supervisor > 0) kept[count++] = calls[i].supervisor;
  kill_strays(kept, count);
}
