/*
 * The port 127.0.0.1:3128 of a box with granted networks: each connection is tied to one of the host's proxy. The runner
 * opens the port and starts this with it (runner/network.h), so that nobody takes the port while this is restarted.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define LISTENER 3
#define PROXY "/run/harness/egress.sock"
/* More wait in the port's queue. Each takes two descriptors of the box's 4096. */
#define MOST_TUNNELS 1500
#define PIECE 65536
/* With many tunnels each holds less, so that readers who do not read cannot fill the box's memory through this. */
#define MANY 128
#define SMALL_PIECE 16384
/* How long a tunnel waits for a place in the proxy's queue, and how often it looks. */
#define DIAL_MS 10000
/* And for a socket that is not there: that of a relay is made anew (../relay). */
#define ABSENT_MS 500
#define AGAIN_MS 20

struct end {
  struct tunnel *tunnel;
  int fd;
  uint32_t watched;
  /* Nothing more comes from here; nothing more is sent there. */
  int ended, shut;
  /* What waits to be sent there. */
  unsigned char *waiting;
  size_t from, to;
};

struct tunnel {
  struct end ends[2]; /* the box's command, the proxy */
  struct tunnel *next, *before;
  int64_t dial_until; /* 0 once it is connected */
  int closed;
};

static struct tunnel *all, *gone;
static int count, most, dialling, queue;
static uint32_t listening;
static int64_t accept_again;
static unsigned char piece[PIECE];

static int64_t now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* What is watched for nothing is not watched: a hang-up would be told for ever. */
static void watch(int fd, uint32_t *watched, uint32_t wanted, void *who) {
  if (*watched == wanted) return;
  struct epoll_event event = {.events = wanted, .data.ptr = who};
  int how = *watched == 0 ? EPOLL_CTL_ADD : wanted == 0 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
  if (epoll_ctl(queue, how, fd, &event) < 0) _exit(71);
  *watched = wanted;
}

static void close_tunnel(struct tunnel *t) {
  if (t->closed) return;
  t->closed = 1;
  if (t->dial_until > 0) dialling--;
  for (int i = 0; i < 2; i++) {
    if (t->ends[i].fd >= 0) close(t->ends[i].fd);
    free(t->ends[i].waiting);
  }
  if (t->before != NULL) t->before->next = t->next;
  else all = t->next;
  if (t->next != NULL) t->next->before = t->before;
  /* An event of the same round may still name it. */
  t->next = gone;
  gone = t;
  count--;
}

static void bury(void) {
  while (gone != NULL) {
    struct tunnel *t = gone;
    gone = t->next;
    free(t);
  }
}

/* Passes on that an end has ended, once all it said is passed on; the tunnel is over when both have. */
static void settle(struct tunnel *t) {
  for (int i = 0; i < 2; i++) {
    struct end *from = &t->ends[i], *to = &t->ends[1 - i];
    if (!from->ended || to->waiting != NULL || to->shut) continue;
    shutdown(to->fd, SHUT_WR);
    to->shut = 1;
  }
  if (t->ends[0].shut && t->ends[1].shut) return close_tunnel(t);
  for (int i = 0; i < 2; i++) {
    struct end *e = &t->ends[i];
    uint32_t reads = !e->ended && t->ends[1 - i].waiting == NULL ? EPOLLIN : 0;
    watch(e->fd, &e->watched, reads | (e->waiting != NULL ? EPOLLOUT : 0), e);
  }
}

/* How much was sent; -1 where nobody takes it any more. */
static ssize_t give(int fd, const unsigned char *data, size_t length) {
  ssize_t n = send(fd, data, length, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n >= 0) return n;
  return errno == EAGAIN || errno == EINTR || errno == ENOBUFS ? 0 : -1;
}

static int keep(struct end *to, const unsigned char *data, size_t length) {
  to->waiting = malloc(length);
  if (to->waiting == NULL) return -1;
  memcpy(to->waiting, data, length);
  to->from = 0, to->to = length;
  return 0;
}

static int pass_on(struct end *from, struct end *to) {
  ssize_t n = read(from->fd, piece, count < MANY ? PIECE : SMALL_PIECE);
  if (n < 0) return errno == EAGAIN || errno == EINTR ? 0 : -1;
  if (n == 0) return from->ended = 1, 0;
  ssize_t sent = give(to->fd, piece, (size_t)n);
  if (sent < 0) return -1;
  return sent == n ? 0 : keep(to, piece + sent, (size_t)(n - sent));
}

static int send_waiting(struct end *to) {
  ssize_t sent = give(to->fd, to->waiting + to->from, to->to - to->from);
  if (sent < 0) return -1;
  to->from += (size_t)sent;
  if (to->from == to->to) free(to->waiting), to->waiting = NULL;
  return 0;
}

static void work(struct end *e, uint32_t events) {
  struct tunnel *t = e->tunnel;
  struct end *other = &t->ends[e == &t->ends[0]];
  if (t->closed) return;
  int failed = 0;
  if (e->waiting != NULL && events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) failed = send_waiting(e);
  if (failed == 0 && !e->ended && other->waiting == NULL && events & (EPOLLIN | EPOLLHUP | EPOLLERR))
    failed = pass_on(e, other);
  if (failed < 0) close_tunnel(t);
  else settle(t);
}

static const char ABSENT[] = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"
                             "the filtering proxy of this sandbox does not answer\n";

static void refuse(struct tunnel *t) {
  give(t->ends[0].fd, (const unsigned char *)ABSENT, sizeof ABSENT - 1);
  shutdown(t->ends[0].fd, SHUT_WR);
  /* Unread bytes at a close would take the answer back. */
  while (recv(t->ends[0].fd, piece, sizeof piece, MSG_DONTWAIT) > 0) continue;
  close_tunnel(t);
}

static void dial(struct tunnel *t, int64_t now) {
  struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = PROXY};
  if (connect(t->ends[1].fd, (struct sockaddr *)&address, sizeof address) == 0) {
    t->dial_until = 0;
    dialling--;
    settle(t);
    return;
  }
  int absent = errno == ENOENT || errno == ECONNREFUSED;
  int64_t until = absent ? t->dial_until - DIAL_MS + ABSENT_MS : t->dial_until;
  if ((!absent && errno != EAGAIN && errno != EINTR) || now >= until) refuse(t);
}

static void dial_all(int64_t now) {
  struct tunnel *next;
  if (dialling == 0) return;
  for (struct tunnel *t = all; t != NULL; t = next) {
    next = t->next;
    if (t->dial_until > 0) dial(t, now);
  }
}

static int open_tunnel(int from, int64_t now) {
  int to = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  struct tunnel *t = to < 0 ? NULL : calloc(1, sizeof *t);
  if (t == NULL) {
    if (to >= 0) close(to);
    close(from);
    return -1;
  }
  for (int i = 0; i < 2; i++) t->ends[i] = (struct end){.tunnel = t, .fd = i == 0 ? from : to};
  t->next = all;
  if (all != NULL) all->before = t;
  all = t;
  count++, dialling++;
  t->dial_until = now + DIAL_MS;
  dial(t, now);
  return 0;
}

static void accept_all(int64_t now) {
  while (count < most) {
    int fd = accept4(LISTENER, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0 && (errno == ECONNABORTED || errno == EINTR)) continue;
    if (fd < 0 && errno == EAGAIN) return;
    /* Out of descriptors or memory: looked at again, and not at once. */
    if (fd < 0 || open_tunnel(fd, now) < 0) {
      accept_again = now + AGAIN_MS * 5;
      return;
    }
  }
}

static int sleep_ms(int64_t now) {
  int64_t due = dialling > 0 ? AGAIN_MS : -1;
  if (accept_again > 0 && (due < 0 || accept_again - now < due)) due = accept_again > now ? accept_again - now : 0;
  return (int)due;
}

int main(void) {
  struct epoll_event events[128];
  struct rlimit files;
  signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  most = MOST_TUNNELS;
  if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < 2 * MOST_TUNNELS + 16)
    most = files.rlim_cur < 18 ? 1 : (int)(files.rlim_cur - 16) / 2;
  queue = epoll_create1(EPOLL_CLOEXEC);
  if (queue < 0) return 71;
  for (;;) {
    int64_t now = now_ms();
    if (accept_again > 0 && now >= accept_again) accept_again = 0;
    watch(LISTENER, &listening, count < most && accept_again == 0 ? EPOLLIN : 0, NULL);
    int n = epoll_wait(queue, events, 128, sleep_ms(now));
    if (n < 0 && errno != EINTR) return 70;
    now = now_ms();
    for (int i = 0; i < n; i++)
      if (events[i].data.ptr == NULL) accept_all(now);
      else work(events[i].data.ptr, events[i].events);
    dial_all(now);
    bury();
  }
}
