#define _GNU_SOURCE
#include "calls.h"
#include "call.h"
#include "guard.h"
#include "network.h"
#include "protocol.h"
#include "tree.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SAMPLE_MS 100

static struct call calls[MAX_CALLS];
static int64_t sampled;

int64_t now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int64_t now_ms(void) { return now_us() / 1000; }

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

void shut(int *fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

static int running(int own) {
  int count = 0;
  for (int i = 0; i < MAX_CALLS; i++) count += calls[i].supervisor > 0 && calls[i].own == own;
  return count;
}

void note_usage(struct call *c, uint64_t memory, uint64_t pids) {
  /* The bridge is no process of a call, nor is a program of the harness's own, with its supervisor. */
  uint64_t beside = (network_pid() > 0) + 2 * (uint64_t)running(1);
  pids -= pids < beside ? pids : beside;
  if (memory > c->peak_memory) c->peak_memory = memory;
  if (pids > c->peak_pids) c->peak_pids = pids;
}

static void step_file(struct call *c) {
  if (c->stage == FILE_OUT)
    while (link_waiting() < FULL && file_read_more(&c->file, c->id))
      if (c->file.finished) break;
  if (c->file.finished) c->stage = FREE;
}

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
    if (c != NULL && c->stage == FILE_IN && !guard_lost()) file_write_end(&c->file, f->call);
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
    next += observer_watch(c->observer, next);
    int64_t times[5] = {c->ended ? -1 : c->deadline, c->polite_until, c->due, c->stage == COMMAND && !c->own ? sampled + SAMPLE_MS : -1, observer_due(c->observer)};
    for (int t = 0; t < 5; t++)
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
  guard_lost();
  for (int i = 0; i < MAX_CALLS; i++)
    if (calls[i].supervisor > 0) note_usage(&calls[i], memory, pids);
}

void calls_step(void) {
  int64_t now = now_ms();
  if (running(0) > 0) sample(now);
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
    if (observer_step(c->observer)) begin_killing(c, now);
    step_command(c, now, !c->own && running(0) == 1);
  }
}

/* A supervisor that a command killed leaves its tree to the runner, which ends it as strays. */
void calls_reap(void) {
  pid_t kept[MAX_CALLS + 1];
  int count = 0, strays = 0, status;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    int known = network_ended(pid);
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
  if (network_pid() > 0) kept[count++] = network_pid();
  kill_strays(kept, count);
}
