#define _GNU_SOURCE
#include "observe.h"
#include "call.h"
#include "link.h"
#include "look.h"
#include "peek.h"
#include "protocol.h"
#include "tree.h"
#include "witness.h"
#include <errno.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#endif
#ifndef SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#endif

/* As long as calls follow each other this quickly, and no longer than that, nothing else of the runner's is looked at. */
#define NEXT_US 60
#define TURN_US 1000
#define SAMPLE_MS 25

void observer_take(struct observer **o, const struct field *f) {
  if (*o == NULL && (*o = calloc(1, sizeof **o)) == NULL) _exit(71);
  struct observer *w = *o;
  if (w->seen == NULL) {
    w->fd = w->notices = -1;
    if ((w->seen = seen_new()) == NULL) _exit(71);
  }
  if (f->name == 'w') {
    char **more = realloc(w->trees, (size_t)(w->tree_count + 1) * sizeof *more);
    if (more == NULL) _exit(71);
    w->trees = more;
    w->trees[w->tree_count++] = field_text(f);
  }
  if (f->name != 'c' || f->length < 2) return;
  struct canary *more = realloc(w->canaries, (size_t)(w->canary_count + 1) * sizeof *more);
  if (more == NULL) _exit(71);
  struct field at = {0, f->data + 1, f->length - 1};
  w->canaries = more;
  w->canaries[w->canary_count++] = (struct canary){(char)f->data[0], field_text(&at), 0, -1, 0, 0};
}

/* A name is enough: nobody gets as far as to speak to it. Where something stands it is left. */
static void make_socket(const char *at) {
  char path[PATH_MAX];
  if ((size_t)snprintf(path, sizeof path, "%s", at) >= sizeof path) return;
  for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
    *slash = 0;
    if (mkdir(path, 0700) < 0 && errno != EEXIST) return;
    *slash = '/';
  }
  if (mknod(path, S_IFSOCK | 0600, 0) < 0) return;
}

static void watch_canary(struct observer *o, struct canary *c) {
  struct stat s;
  if (c->kind == 's') make_socket(c->at);
  if (c->kind == 'a' || stat(c->at, &s) < 0) return;
  c->there = 1;
  c->dev = s.st_dev;
  c->ino = s.st_ino;
  if (c->kind != 'f') return;
  if (o->notices < 0) o->notices = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  if (o->notices >= 0) c->watch = inotify_add_watch(o->notices, c->at, IN_OPEN | IN_DONT_FOLLOW);
}

void observer_begin(struct observer *o, char **words, int64_t begun) {
  o->begun = begun;
  o->words = malloc(WORDS_BYTES + 16);
  if (o->words == NULL) _exit(71);
  for (int i = 0; words != NULL && words[i] != NULL && o->words_length + 8 < WORDS_BYTES; i++)
    o->words_length = witness_word(o->words, o->words_length, words[i]);
  for (int i = 0; i < o->canary_count; i++) watch_canary(o, &o->canaries[i]);
}

/* The filter tells of sendmsg; this one passes by two words that nobody else knows. */
void observer_join(int fd) {
  uint32_t pass[2] = {0, 0};
  char body = 0, space[CMSG_SPACE(sizeof(int))] = {0};
  struct iovec part = {&body, 1};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  if (getrandom(pass, sizeof pass, 0) != sizeof pass) return;
  int listener = told_filter(pass);
  if (listener >= 0) {
    message.msg_control = space;
    message.msg_controllen = sizeof space;
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof listener);
    memcpy(CMSG_DATA(head), &listener, sizeof listener);
  }
  long sent = syscall(SYS_sendmsg, fd, &message, MSG_NOSIGNAL, (uint64_t)pass[0], (uint64_t)pass[1], 0);
  explicit_bzero(pass, sizeof pass);
  /* Filtered, and nobody listens: nothing would ever go on. */
  if (listener >= 0 && sent < 0) _exit(126);
}

/* One call that waits; false when nothing more can come of it. After a touch it waits for its end. */
static int hear(struct observer *o) {
  union {
    struct seccomp_notif call;
    char room[512];
  } in;
  int fresh;
  memset(&in, 0, sizeof in);
  if (ioctl(o->fd, SECCOMP_IOCTL_NOTIF_RECV, &in.call) < 0) return errno == EINTR || errno == ENOENT;
  const struct told *told = told_of(in.call.data.nr);
  struct peek *who = told == NULL ? NULL : peek_at((pid_t)in.call.pid, &fresh);
  if (who != NULL && fresh && ioctl(o->fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &in.call.id) < 0) {
    peek_forget((pid_t)in.call.pid);
    return 1;
  }
  if (who != NULL) {
    uint64_t args[6];
    for (int i = 0; i < 6; i++) args[i] = in.call.data.args[i];
    if (o->first == 0) {
      o->first = who->tgid;
      seen_process(o->seen, o->first, 0, o->words, o->words_length, 0, 1);
    }
    struct told_call t = {o, who, told, args, in.call.id};
    if (told->doing != DO_EXEC) o->started = 1;
    look(&t);
  }
  if (o->touched) return 1;
  struct seccomp_notif_resp answer = {in.call.id, 0, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE};
  if (ioctl(o->fd, SECCOMP_IOCTL_NOTIF_SEND, &answer) < 0) return errno == ENOENT || errno == EINTR;
  return 1;
}

/* The listener, or that there is none: then looks now and then are all. */
static void welcome(struct observer *o) {
  char body, space[CMSG_SPACE(sizeof(int))];
  struct iovec part = {&body, 1};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
  ssize_t n = recvmsg(o->fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  shut(&o->fd);
  struct cmsghdr *head = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;
  if (head == NULL || head->cmsg_type != SCM_RIGHTS) {
    o->by = SEEING_SAMPLES;
    return;
  }
  memcpy(&o->fd, CMSG_DATA(head), sizeof o->fd);
  o->listening = 1;
  o->by = SEEING_CALLS;
  /* Where the kernel has it, who is told runs at once where the other one waits. */
  ioctl(o->fd, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
}

/* Who has this file open, of those below the command; else who hid last, or 0. */
static pid_t holder_of(const struct observer *o, const struct canary *c) {
  pid_t pids[256];
  char path[64];
  struct stat s;
  int count = tree_below(o->supervisor, pids, 256);
  for (int i = 0; i < count; i++)
    for (int fd = 0; fd < 256; fd++) {
      snprintf(path, sizeof path, "/proc/%d/fd/%d", pids[i], fd);
      if (stat(path, &s) == 0 && s.st_dev == c->dev && s.st_ino == c->ino) return pids[i];
    }
  return o->hidden;
}

static void hear_notices(struct observer *o) {
  char notice[4096] __attribute__((aligned(8)));
  ssize_t n = o->notices < 0 ? -1 : read(o->notices, notice, sizeof notice);
  for (ssize_t at = 0; at < n;) {
    const struct inotify_event *e = (const struct inotify_event *)(notice + at);
    at += (ssize_t)(sizeof *e + e->len);
    for (int i = 0; i < o->canary_count; i++)
      if (o->canaries[i].watch >= 0 && o->canaries[i].watch == e->wd && (e->mask & IN_OPEN) != 0)
        witness_touch(o, i, holder_of(o, &o->canaries[i]), o->canaries[i].at);
  }
}

static void hear_calls(struct observer *o) {
  struct timespec none = {0, 0}, next = {0, NEXT_US * 1000};
  int64_t until = now_us() + TURN_US;
  for (int heard = 0; o->fd >= 0 && !o->touched; heard = 1) {
    struct pollfd fds[2] = {{o->fd, POLLIN, 0}, {o->notices, POLLIN, 0}};
    if (ppoll(fds, 2, heard ? &next : &none, NULL) <= 0) return;
    if (fds[1].revents != 0) hear_notices(o);
    if (fds[0].revents != 0 && ((fds[0].revents & POLLIN) == 0 || !hear(o))) shut(&o->fd);
    if (now_us() >= until) return;
  }
}

static void sample(struct observer *o) {
  pid_t pids[1024];
  int64_t now = now_ms();
  if (now - o->sampled < SAMPLE_MS) return;
  o->sampled = now;
  int count = tree_below(o->supervisor, pids, 1024);
  for (int i = 0; i < count; i++) {
    if (o->first == 0) o->first = pids[i];
    witness_again(o, pids[i]);
  }
}

int observer_watch(const struct observer *o, struct pollfd *fds) {
  int count = 0;
  if (o == NULL || o->touched) return 0;
  if (o->fd >= 0) fds[count++] = (struct pollfd){o->fd, POLLIN, 0};
  if (o->notices >= 0) fds[count++] = (struct pollfd){o->notices, POLLIN, 0};
  return count;
}

int64_t observer_due(const struct observer *o) {
  return o == NULL || o->touched || o->by != SEEING_SAMPLES ? -1 : o->sampled + SAMPLE_MS;
}

int observer_step(struct observer *o) {
  if (o == NULL) return 0;
  if (o->fd >= 0 && !o->listening) welcome(o);
  if (o->listening) hear_calls(o);
  if (o->by == SEEING_SAMPLES) sample(o);
  hear_notices(o);
  return o->touched;
}

void observer_send(struct observer *o, uint32_t call) {
  struct buffer b = {0};
  if (o->first == 0) seen_process(o->seen, 0, 0, o->words, o->words_length, 0, 1);
  seen_send(o->seen, call);
  put_field_number(&b, 'b', (uint64_t)o->by);
  put_field_number(&b, 'h', o->hidden != 0);
  link_send(REP_SEEN, call, buffer_at(&b), buffer_used(&b));
  buffer_free(&b);
}

void observer_end(struct observer **w) {
  struct observer *o = *w;
  if (o == NULL) return;
  shut(&o->fd), shut(&o->notices);
  for (int i = 0; i < o->canary_count; i++) free(o->canaries[i].at);
  for (int i = 0; i < o->tree_count; i++) free(o->trees[i]);
  free(o->canaries), free(o->trees), free(o->words);
  seen_free(o->seen);
  free(o);
  *w = NULL;
}
