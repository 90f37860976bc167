/*
 * PID 1 of a box: one loop over the wire, the commands' streams and the clock. It ends when the harness does.
 * With LEASE_WORD that is told by its silence instead of by the end of the input (lease.h); with NETWORK_WORD there is a
 * way to granted networks (network.h).
 */
#define _GNU_SOURCE
#include "ask.h"
#include "calls.h"
#include "call.h"
#include "files.h"
#include "guard.h"
#include "lease.h"
#include "link.h"
#include "network.h"
#include "protocol.h"
#include "spawn.h"
#include "usage.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

static int watch_children(void) {
  sigset_t children;
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  sigprocmask(SIG_BLOCK, &children, NULL);
  signal(SIGPIPE, SIG_IGN);
  return signalfd(-1, &children, SFD_NONBLOCK | SFD_CLOEXEC);
}

static void drain(int fd) {
  struct signalfd_siginfo info;
  while (read(fd, &info, sizeof info) > 0) continue;
}

static void take(const struct frame *f) {
  lease_heard();
  switch (f->type) {
  case REQ_ANSWER: ask_answer(f); break;
  case REQ_ALIVE: break;
  case REQ_PING: link_send(REP_PONG, f->call, NULL, 0); break;
  case REQ_HOLD: link_hold(f); break;
  case REQ_RESUME:
    link_resume(f);
    guard_lost();
    file_end(f->call, 0, "");
    break;
  default: calls_take(f);
  }
}

/* Held, it looks after nothing but its harness; what its commands say waits in their pipes. */
static int watch(struct pollfd *fds, int *due) {
  *due = -1;
  int count = guard_watch(fds);
  if (link_held()) return count;
  count += calls_watch(fds + count, due);
  *due = network_due(*due, now_ms());
  return count + ask_watch(fds + count);
}

#define TELL_MS 2000

/* What may still write is ended before anybody is told; held, nobody is there to be told. */
static int end_unguarded(void) {
  kill(-1, SIGKILL);
  if (link_held()) return 0;
  guard_tell();
  for (int64_t until = now_ms() + TELL_MS; link_waiting() > 0 && now_ms() < until;) {
    struct pollfd out = {1, POLLOUT, 0};
    poll(&out, 1, 100);
    if (!link_flush()) return 0;
  }
  return 0;
}

int main(int argc, char **argv) {
  static struct pollfd fds[3 + GUARD_FDS + MAX_CALLS * CALL_FDS + ASK_FDS];
  struct frame frame;
  int due;
  /* It signals all that it may: anywhere but in a box of its own that would be the whole machine. */
  if (getpid() != 1) return 64;
  spawn_open();
  /* No process of the same user can look into this one: memory, environment, descriptors. */
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  int children = watch_children();
  link_open();
  usage_open();
  guard_open();
  calls_open();
  for (int i = 1; i < argc; i++)
    if (strcmp(argv[i], LEASE_WORD) == 0) lease_open();
    else if (strcmp(argv[i], NETWORK_WORD) == 0 && !network_open()) return 71;
  for (;;) {
    fds[0] = (struct pollfd){0, POLLIN, 0};
    fds[1] = (struct pollfd){children, POLLIN, 0};
    fds[2] = (struct pollfd){link_waiting() > 0 ? 1 : -1, POLLOUT, 0};
    int count = watch(fds + 3, &due);
    if (poll(fds, (nfds_t)(3 + count), lease_due(due)) < 0 && errno != EINTR) return 70;
    guard_hear(fds + 3);
    if (guard_was_lost()) return end_unguarded();
    if (fds[1].revents != 0) {
      drain(children);
      calls_reap();
    }
    int there = fds[0].revents == 0 || link_fill();
    while (link_next(&frame)) take(&frame);
    if (!link_held()) {
      calls_step();
      ask_step();
      network_step(now_ms());
    }
    if (guard_was_lost()) return end_unguarded();
    if (!link_flush() || !there || lease_over(link_held())) return 0;
  }
}
