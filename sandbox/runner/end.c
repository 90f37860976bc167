/* How a command ends: by itself, at its time, or with its whole tree. */
#define _GNU_SOURCE
#include "call.h"
#include "guard.h"
#include "network.h"
#include "protocol.h"
#include "tree.h"
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* From the polite signal to the other one. */
#define POLITE_MS 2000
/* A tree that is not gone by then is the host's to end: it removes the container. */
#define STUCK_MS 3000

static void send_tail(uint8_t type, const struct call *c, const struct keep *k) {
  const unsigned char *run[2];
  size_t length[2];
  keep_tail(k, run, length);
  for (int i = 0; i < 2; i++)
    if (length[i] > 0) link_send(type, c->id, run[i], length[i]);
}

static void put_kept(struct buffer *b, const struct call *c) {
  struct buffer content = {0};
  int error = file_peek(c->kept, c->kept_most, &content);
  if (error != 0) put_field_number(b, 'F', (uint64_t)error);
  else put_field(b, 'K', content.data, buffer_used(&content));
  buffer_free(&content);
}

/*
 * EXIT: c exit code or s signal; E errno and W where, of a start that failed; t timed out; k processes that had to
 * be killed; o and e all bytes of stdout and stderr, O and R those that were dropped; m peak memory, p peak pids;
 * x kills by the memory limit, l starts refused by the pids limit; u microseconds; z the tree could not be ended.
 * Of the file that was to be read, where the command came to its own end: K content, or F errno.
 */
static void finish_command(struct call *c) {
  struct buffer b = {0};
  struct usage after;
  /* No result of a command whose walls had gone: the box is over. */
  if (guard_lost()) return;
  usage_now(&after);
  note_usage(c, after.memory, after.pids);
  if (after.memory_peak > c->before.memory_peak) note_usage(c, after.memory_peak, 0);
  /* Who was killed at the limit was at it, however short. */
  if (after.memory_kills > c->before.memory_kills) note_usage(c, after.memory_limit, 0);
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
  if (c->kept != NULL && c->spawn_errno == 0 && !c->timed_out && !WIFSIGNALED(c->wait_status)) put_kept(&b, c);
  if (c->observer != NULL) observer_send(c->observer, c->id);
  observer_end(&c->observer);
  link_send(REP_EXIT, c->id, buffer_at(&b), buffer_used(&b));
  buffer_free(&b);
  shut(&c->in), shut(&c->out), shut(&c->err), shut(&c->status);
  keep_free(&c->keep_out), keep_free(&c->keep_err);
  buffer_free(&c->input);
  free(c->kept);
  c->kept = NULL;
  c->stage = FREE;
  c->supervisor = 0;
}

/*
 * Alone in the box, the tree is ended at a stroke: no bomb outruns it. Beside other calls it is hunted; a supervisor
 * that a command has stopped is ended too, then what was below it falls to the runner.
 */
static void kill_tree(struct call *c, int64_t now, int alone) {
  int below = signal_below(c->supervisor, SIGKILL);
  if (below > c->killed) c->killed = below;
  if (alone) kill(-1, SIGKILL), network_struck(now);
  else if (now - c->kill_since >= GRACE_MS) kill(c->supervisor, SIGKILL);
}

void begin_killing(struct call *c, int64_t now) {
  if (c->stage == KILLING) return;
  c->stage = KILLING;
  c->kill_since = c->due = now;
}

void step_command(struct call *c, int64_t now, int alone) {
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
    else kill_tree(c, now, alone), c->due = now + 10;
  }
}
