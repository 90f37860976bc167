/*
 * probe STEP_MS TARGET...: begins a connection to each target every STEP_MS milliseconds, and says a line as often:
 *
 *   NOW ANSWERED SLOWEST QUIET WAITED
 *
 * all counted since it began. NOW, SLOWEST and QUIET are milliseconds: its clock, the slowest answer so far, and for how long
 * the first connection has waited that was begun behind the last one that was answered. ANSWERED are the answers so far:
 * refused by who is there is one, refused on the way is none. WAITED is how many of that silence, of the target with the
 * fewest, have waited SETTLED_MS or were refused on the way. A target is "HOST PORT", in digits, or "$NAME" of the environment.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MOST_TARGETS 4
#define MOST 1024
#define SETTLED_MS 100
/* Nobody waits longer for an answer. */
#define LONGEST_MS 1500
/* Behind so long a silence it looks less often: whoever drops the packets may write each down. */
#define CALM_MS 2000
#define CALM_STEP_MS 250

struct attempt {
  int fd; /* -1: refused on the way */
  int target;
  int64_t begun;
};

static struct sockaddr_storage places[MOST_TARGETS];
static int targets;
static struct attempt attempts[MOST];
static int count;
static int64_t answered, slowest;
/* When the last one was begun that was answered; a silence counts behind it. */
static int64_t last_answered = -1;

static int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void fail(const char *what) {
  fprintf(stderr, "%s: %s\n", what, strerror(errno));
  exit(3);
}

static int read_target(const char *word, struct sockaddr_storage *place) {
  char host[64];
  unsigned port;
  if (word[0] == '$') word = getenv(word + 1);
  if (word == NULL || sscanf(word, "%63s %u", host, &port) != 2 || port == 0 || port > 65535) return 0;
  struct sockaddr_in *four = (struct sockaddr_in *)place;
  struct sockaddr_in6 *six = (struct sockaddr_in6 *)place;
  memset(place, 0, sizeof *place);
  if (inet_pton(AF_INET, host, &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons((uint16_t)port);
  } else if (inet_pton(AF_INET6, host, &six->sin6_addr) == 1) {
    six->sin6_family = AF_INET6;
    six->sin6_port = htons((uint16_t)port);
  } else return 0;
  return 1;
}

static int is_answer(int error) { return error == 0 || error == ECONNREFUSED || error == ECONNRESET; }

/* Of IPv6 it is said so where there is no address to go from; of IPv4, where no port is free, and that is no refusal. */
static int is_refusal(int error, int family) {
  return error == ENETUNREACH || error == EHOSTUNREACH || error == ENETDOWN || error == EPERM || error == EACCES ||
         error == ETIMEDOUT || (error == EADDRNOTAVAIL && family == AF_INET6);
}

static void note_answer(const struct attempt *one, int64_t now) {
  answered++;
  if (now - one->begun > slowest) slowest = now - one->begun;
  if (one->begun > last_answered) last_answered = one->begun;
}

/* What came of one. */
static void settle(struct attempt *one, int error, int64_t now) {
  if (is_answer(error)) note_answer(one, now);
  else if (!is_refusal(error, places[one->target].ss_family)) errno = error, fail("a connection");
  /* Nothing is said, and nothing waited for: whoever is there has it gone at once. */
  struct linger none = { .l_onoff = 1, .l_linger = 0 };
  setsockopt(one->fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
  close(one->fd);
  one->fd = -1;
}

static void begin(int target, int64_t now) {
  if (count == MOST) errno = EMFILE, fail("connections");
  struct attempt *one = &attempts[count++];
  const struct sockaddr_storage *place = &places[target];
  one->target = target;
  one->begun = now;
  one->fd = socket(place->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  /* Without the family there is no way there. */
  if (one->fd == -1 && errno == EAFNOSUPPORT) return;
  if (one->fd == -1) fail("a socket");
  socklen_t size = place->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
  if (connect(one->fd, (const struct sockaddr *)place, size) == 0) settle(one, 0, now_ms());
  else if (errno != EINPROGRESS) settle(one, errno, now_ms());
}

/* What the kernel knows by now. */
static void look(int wait_ms) {
  static struct pollfd watched[MOST];
  for (int i = 0; i < count; i++) watched[i] = (struct pollfd){ .fd = attempts[i].fd, .events = POLLOUT };
  if (poll(watched, (nfds_t)count, wait_ms) == -1 && errno != EINTR) fail("poll");
  int64_t now = now_ms();
  for (int i = 0; i < count; i++) {
    if (attempts[i].fd == -1 || watched[i].revents == 0) continue;
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(attempts[i].fd, SOL_SOCKET, SO_ERROR, &error, &size) == -1) fail("a socket");
    settle(&attempts[i], error, now);
  }
}

static void forget_old(int64_t now) {
  int kept = 0;
  for (int i = 0; i < count; i++) {
    if (now - attempts[i].begun <= LONGEST_MS) attempts[kept++] = attempts[i];
    else if (attempts[i].fd != -1) close(attempts[i].fd);
  }
  count = kept;
}

/* When the first of this silence was begun; kept when that one is forgotten. */
static int64_t silent_since(void) {
  static int64_t since = -1;
  if (since <= last_answered) since = -1;
  for (int i = 0; i < count && since == -1; i++)
    if (attempts[i].begun > last_answered) since = attempts[i].begun;
  return since;
}

/* `now` was read before the last look: what is claimed of it the kernel has been asked for since. */
static void say(int64_t start, int64_t now) {
  int64_t since = silent_since();
  int waited[MOST_TARGETS] = { 0 }, fewest = MOST;
  for (int i = 0; i < count; i++)
    if (attempts[i].begun > last_answered && (attempts[i].fd == -1 || now - attempts[i].begun >= SETTLED_MS))
      waited[attempts[i].target]++;
  for (int i = 0; i < targets; i++)
    if (waited[i] < fewest) fewest = waited[i];
  int64_t quiet = since == -1 ? 0 : now - since;
  if (printf("%lld %lld %lld %lld %d\n", (long long)(now - start), (long long)answered, (long long)slowest,
             (long long)quiet, fewest) < 0 ||
      fflush(stdout) != 0)
    exit(0);
}

int main(int argc, char **argv) {
  int64_t step = argc > 2 ? atoi(argv[1]) : 0;
  targets = argc - 2;
  if (step < 1 || targets < 1 || targets > MOST_TARGETS) return 2;
  for (int i = 0; i < targets; i++)
    if (!read_target(argv[i + 2], &places[i])) {
      fprintf(stderr, "no address and port in digits: %s\n", argv[i + 2]);
      return 2;
    }
  int64_t start = now_ms();
  for (int64_t next = start;;) {
    int64_t now = now_ms();
    forget_old(now);
    for (int i = 0; i < targets; i++) begin(i, now);
    int64_t since = silent_since();
    next += since != -1 && now - since > CALM_MS ? CALM_STEP_MS : step;
    if (next < now) next = now + step;
    for (now = now_ms(); now < next; now = now_ms()) look((int)(next - now));
    now = now_ms();
    look(0);
    say(start, now);
  }
}
