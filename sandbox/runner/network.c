#define _GNU_SOURCE
#include "network.h"
#include "call.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PORT 3128
#define QUEUE 1024
#define BRIDGE "/usr/local/lib/harness/bridge"
#define LISTENER 3
/* From one start to the next: more from time to time where it does not live, as where a command ends it in a loop. */
#define LEAST_MS 10
#define MOST_MS 2000
#define LIVED_MS 10000
/* After a stroke against all of the box: that is repeated every 10 ms until nothing else is left. */
#define STRUCK_MS 30

static int listener = -1;
static pid_t bridge;
static int64_t started, due = -1, wait_ms = LEAST_MS;

int network_open(void) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (listener < 0 || bind(listener, (struct sockaddr *)&at, sizeof at) < 0 || listen(listener, QUEUE) < 0) return 0;
  due = now_ms();
  network_step(due);
  return 1;
}

pid_t network_pid(void) { return bridge; }

static void become_bridge(void) {
  char *words[] = {"bridge", NULL}, *none[] = {NULL};
  sigset_t unblocked;
  sigemptyset(&unblocked);
  setsid();
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd < 3; fd++)
    if (null < 0 || dup2(null, fd) < 0) _exit(126);
  if (listener == LISTENER ? fcntl(LISTENER, F_SETFD, 0) < 0 : dup2(listener, LISTENER) < 0) _exit(126);
  if (chdir("/") < 0) _exit(126);
  for (int s = 1; s < NSIG; s++) signal(s, SIG_DFL);
  sigprocmask(SIG_SETMASK, &unblocked, NULL);
  execve(BRIDGE, words, none);
  _exit(127);
}

static void start(int64_t now) {
  due = -1;
  started = now;
  pid_t pid = fork();
  if (pid == 0) become_bridge();
  if (pid > 0) bridge = pid;
  else due = now + wait_ms;
}

int network_ended(pid_t pid) {
  if (bridge == 0 || pid != bridge) return 0;
  int64_t now = now_ms();
  bridge = 0;
  if (due >= 0) return 1;
  wait_ms = now - started >= LIVED_MS ? LEAST_MS : wait_ms * 2 > MOST_MS ? MOST_MS : wait_ms * 2;
  due = now + (wait_ms == LEAST_MS ? 0 : wait_ms);
  return 1;
}

void network_struck(int64_t now) {
  if (listener >= 0) due = now + STRUCK_MS;
}

void network_step(int64_t now) {
  int status;
  if (bridge > 0 && waitpid(bridge, &status, WNOHANG | WUNTRACED) == bridge) {
    if (WIFSTOPPED(status)) kill(bridge, SIGKILL);
    else network_ended(bridge);
  }
  if (bridge == 0 && due >= 0 && now >= due) start(now);
}

int network_due(int soonest, int64_t now) {
  if (bridge != 0 || due < 0) return soonest;
  int left = due <= now ? 0 : (int)(due - now);
  return soonest < 0 || left < soonest ? left : soonest;
}
