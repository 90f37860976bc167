/* What flows between a command and the harness. */
#define _GNU_SOURCE
#include "call.h"
#include "protocol.h"
#include "spawn.h"
#include <errno.h>
#include <unistd.h>

void read_stream(struct call *c, int *fd, struct keep *k, uint8_t type) {
  static unsigned char chunk[262144];
  for (int rounds = 0; rounds < 8; rounds++) {
    if (k->total < k->head && link_waiting() >= FULL) return;
    size_t room = sizeof chunk;
    unsigned char *kept = k->total < k->head ? NULL : keep_room(k, &room);
    ssize_t n = read(*fd, kept == NULL ? chunk : kept, room);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {
      shut(fd);
      return;
    }
    if (kept != NULL) keep_took(k, (size_t)n);
    else {
      size_t front = keep_add(k, chunk, (size_t)n);
      if (front > 0) link_send(type, c->id, chunk, front);
    }
    if ((size_t)n < room && (size_t)n < sizeof chunk / 4) return;
  }
}

void write_input(struct call *c) {
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

void read_status(struct call *c) {
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
