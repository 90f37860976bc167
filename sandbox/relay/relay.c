/*
 * Where no folder of the host's can be mounted (a pod, an engine elsewhere), this has the socket that the bridge connects
 * to, and passes on all connections together over its stdin and stdout, to the harness, which has the proxy. Frames, either way:
 *
 *   u8 type | u32 stream | u32 length | payload
 *
 * Numbers are little-endian. Streams are counted by this side and no number comes twice. As much as WINDOW may be sent of a
 * stream, either way, and then what MORE gives. It ends when its input does. The other side is src/boxes/relay-streams.ts.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define SOCKET "/run/harness/egress.sock"
/* More wait in the socket's queue. */
#define MOST 256
#define QUEUE 1024
#define WINDOW (256u << 10)
#define PIECE (32u << 10)
#define HEAD 9
/* What was read away is told in such steps, so that a window never runs dry for want of a word. */
#define STEP (WINDOW / 4)
#define OUT (8 * (HEAD + PIECE))

enum type {
  READY, /* of no stream: the socket is there */
  OPEN,  /* from here alone */
  DATA,
  END,   /* no more DATA from that side */
  CLOSE, /* of either side, the last word of a stream */
  MORE,  /* u32: so many bytes were read away */
};

struct stream {
  uint32_t id; /* 0: free */
  int fd;      /* -1: gone, and CLOSE has to be said */
  int ended, said_end, host_ended, host_closed;
  uint32_t window, taken;
  unsigned char *waiting;
  size_t from, to;
  int slot; /* of this round's poll; 0: not watched */
};

static struct stream streams[MOST];
static int count, first;
static uint32_t last;
static unsigned char out[OUT];
static size_t out_from, out_to;
static unsigned char in[HEAD + PIECE];
static size_t in_has;

static uint32_t number(const unsigned char *at) {
  return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static void put_number(unsigned char *at, uint32_t n) {
  for (int i = 0; i < 4; i++) at[i] = (unsigned char)(n >> 8 * i);
}

/* Whether any frame has room. */
static int roomy(void) {
  if (out_from == out_to) out_from = out_to = 0;
  else if (out_from > OUT / 2) memmove(out, out + out_from, out_to - out_from), out_to -= out_from, out_from = 0;
  return OUT - out_to >= HEAD + PIECE;
}

/* The payload of `length` bytes is there already. */
static void say(enum type type, uint32_t stream, uint32_t length) {
  unsigned char *head = out + out_to;
  head[0] = (unsigned char)type;
  put_number(head + 1, stream);
  put_number(head + 5, length);
  out_to += HEAD + length;
}

/* Whether both sides have it. */
static int is_open(const struct stream *s) { return s->id != 0 && s->fd >= 0 && !s->host_closed; }

static void leave(struct stream *s) {
  if (s->fd >= 0) close(s->fd);
  free(s->waiting);
  memset(s, 0, sizeof *s);
  s->fd = -1;
  count--;
}

/* Nobody is there any more on this side. */
static void drop(struct stream *s) {
  if (s->host_closed) return leave(s);
  close(s->fd);
  free(s->waiting);
  s->waiting = NULL;
  s->fd = -1;
}

/* Once all is passed on. */
static void settle(struct stream *s) {
  if (s->waiting != NULL || s->fd < 0) return;
  if (s->host_closed) leave(s);
  else if (s->host_ended == 1) shutdown(s->fd, SHUT_WR), s->host_ended = 2;
}

static void send_waiting(struct stream *s) {
  ssize_t n = send(s->fd, s->waiting + s->from, s->to - s->from, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOBUFS)) return;
  if (n < 0) return drop(s);
  s->from += (size_t)n;
  s->taken += (uint32_t)n;
  if (s->from < s->to) return;
  free(s->waiting);
  s->waiting = NULL;
  s->from = s->to = 0;
  settle(s);
}

static void receive_data(struct stream *s, const unsigned char *data, size_t length) {
  if (s->fd < 0) return;
  if (s->host_ended || s->to - s->from + length > WINDOW) _exit(65);
  if (s->waiting == NULL && (s->waiting = malloc(WINDOW)) == NULL) return drop(s);
  if (s->to + length > WINDOW) memmove(s->waiting, s->waiting + s->from, s->to - s->from), s->to -= s->from, s->from = 0;
  memcpy(s->waiting + s->to, data, length);
  s->to += length;
  send_waiting(s);
}

static void receive(enum type type, uint32_t id, const unsigned char *data, size_t length) {
  struct stream *s = NULL;
  for (int i = 0; i < MOST && s == NULL; i++)
    if (streams[i].id == id) s = &streams[i];
  if (id == 0 || id > last) _exit(65);
  /* It was closed here, and that is on its way. */
  if (s == NULL) return;
  switch (type) {
  case DATA: receive_data(s, data, length); break;
  case END:
    s->host_ended = 1;
    settle(s);
    break;
  case CLOSE:
    s->host_closed = 1;
    if (s->fd < 0) leave(s);
    else settle(s);
    break;
  case MORE:
    if (length != 4 || number(data) > WINDOW - s->window) _exit(65);
    s->window += number(data);
    break;
  default: _exit(65);
  }
}

static void take_frames(void) {
  for (;;) {
    ssize_t n = read(0, in + in_has, sizeof in - in_has);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) _exit(0);
    in_has += (size_t)n;
    size_t at = 0;
    while (in_has - at >= HEAD) {
      uint32_t length = number(in + at + 5);
      if (length > PIECE) _exit(65);
      if (in_has - at < HEAD + length) break;
      receive((enum type)in[at], number(in + at + 1), in + at + HEAD, length);
      at += HEAD + length;
    }
    memmove(in, in + at, in_has - at);
    in_has -= at;
  }
}

static void give_out(void) {
  if (out_from == out_to) return;
  ssize_t n = write(1, out + out_from, out_to - out_from);
  if (n > 0) out_from += (size_t)n;
  else if (n < 0 && errno != EAGAIN && errno != EINTR) _exit(0);
}

/* What was said here, as far as the window goes. */
static void pass_on(struct stream *s) {
  ssize_t n = recv(s->fd, out + out_to + HEAD, s->window < PIECE ? s->window : PIECE, MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n < 0) return drop(s);
  if (n == 0) s->ended = 1;
  else say(DATA, s->id, (uint32_t)n), s->window -= (uint32_t)n;
}

/* Words that a stream owes; in each round another one is the first to have them and its bytes told. */
static void tell(struct stream *s, short events) {
  if (s->taken >= STEP && !s->host_ended && is_open(s) && roomy()) {
    put_number(out + out_to + HEAD, s->taken);
    say(MORE, s->id, 4);
    s->taken = 0;
  }
  int reads = is_open(s) && !s->ended && s->window > 0;
  if (reads && events & (POLLIN | POLLHUP | POLLERR) && roomy()) pass_on(s);
  if (is_open(s) && s->ended && !s->said_end && roomy()) say(END, s->id, 0), s->said_end = 1;
  if (s->id != 0 && s->fd < 0 && roomy()) say(CLOSE, s->id, 0), leave(s);
}

/* Told at once, so that they are told in the order of their numbers. */
static void accept_all(int listener) {
  while (count < MOST && roomy()) {
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0 && (errno == ECONNABORTED || errno == EINTR)) continue;
    if (fd < 0) return;
    struct stream *s = streams;
    while (s->id != 0) s++;
    if (last == UINT32_MAX) _exit(70);
    *s = (struct stream){.id = ++last, .fd = fd, .window = WINDOW};
    count++;
    say(OPEN, last, 0);
  }
}

static int open_socket(void) {
  struct sockaddr_un at = {.sun_family = AF_UNIX, .sun_path = SOCKET};
  int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  mkdir("/run/harness", 0755);
  unlink(SOCKET);
  if (listener < 0 || bind(listener, (struct sockaddr *)&at, sizeof at) < 0 || listen(listener, QUEUE) < 0) _exit(71);
  return listener;
}

int main(void) {
  static struct pollfd fds[3 + MOST];
  signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  for (int fd = 0; fd < 2; fd++) fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  for (int i = 0; i < MOST; i++) streams[i].fd = -1;
  int listener = open_socket();
  say(READY, 0, 0);
  for (;;) {
    int room = roomy(), n = 3;
    fds[0] = (struct pollfd){0, POLLIN, 0};
    fds[1] = (struct pollfd){out_from < out_to ? 1 : -1, POLLOUT, 0};
    fds[2] = (struct pollfd){count < MOST && room ? listener : -1, POLLIN, 0};
    for (int i = 0; i < MOST; i++) {
      struct stream *s = &streams[i];
      int reads = is_open(s) && !s->ended && s->window > 0 && room;
      short wanted = (short)((reads ? POLLIN : 0) | (s->waiting != NULL ? POLLOUT : 0));
      s->slot = 0;
      /* What is watched for nothing is not watched: a hang-up would be told for ever. */
      if (s->id == 0 || s->fd < 0 || wanted == 0) continue;
      s->slot = n;
      fds[n++] = (struct pollfd){s->fd, wanted, 0};
    }
    if (poll(fds, (nfds_t)n, -1) < 0 && errno != EINTR) return 70;
    if (fds[0].revents != 0) take_frames();
    if (fds[2].revents != 0) accept_all(listener);
    for (int i = 0; i < MOST; i++) {
      struct stream *s = &streams[(first + i) % MOST];
      short events = s->slot > 0 ? fds[s->slot].revents : 0;
      if (s->id != 0 && s->waiting != NULL && events & (POLLOUT | POLLHUP | POLLERR)) send_waiting(s);
      if (s->id != 0) tell(s, events);
    }
    first = (first + 1) % MOST;
    give_out();
  }
}
