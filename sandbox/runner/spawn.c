#define _GNU_SOURCE
#include "spawn.h"
#include "observe.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void tell(int status, int kind, int value, int more) {
  struct notice n = {kind, value, more};
  if (write(status, &n, sizeof n) < 0) _exit(72);
}

static void fail(int status, int where) {
  tell(status, NOTICE_FAILED, errno, where);
  _exit(127);
}

/* The runner's own standing with the memory killer, opened while it still might. */
static int score = -1;
static char usual[16];

void spawn_open(void) {
  score = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
  ssize_t n = score < 0 ? -1 : read(score, usual, sizeof usual - 1);
  usual[n < 0 ? 0 : n] = 0;
}

/* Commands inherit the first place in its list; the runner itself steps back at once. */
static void stand(const char *place) {
  if (score >= 0 && pwrite(score, place, strlen(place), 0) < 0) errno = 0;
}

/* Whether no link led here. */
static int stands_in(const char *folder) {
  char here[PATH_MAX];
  return getcwd(here, sizeof here) != NULL && strcmp(here, folder) == 0;
}

/* Every descriptor of the runner closes itself on exec; 0 to 2 are always open, so the ends lie above them. */
static void become(const struct command *c, const int ends[5][2]) {
  int in = ends[0][1], status = ends[3][1];
  sigset_t none;
  sigemptyset(&none);
  setsid();
  if (c->tty && ioctl(in, TIOCSCTTY, 0) < 0) fail(status, START_TTY);
  if (dup2(in, 0) < 0 || dup2(ends[1][1], 1) < 0 || dup2(ends[2][1], 2) < 0) fail(status, START_PIPES);
  if (chdir(c->folder) < 0) fail(status, START_FOLDER);
  if (c->exact && !stands_in(c->folder)) errno = ENOTDIR, fail(status, START_FOLDER);
  umask(022);
  for (int s = 1; s < NSIG; s++) signal(s, SIG_DFL);
  sigprocmask(SIG_SETMASK, &none, NULL);
  environ = c->env;
  if (c->observed) observer_join(ends[4][1]);
  execvp(c->words[0], c->words);
  fail(status, START_PROGRAM);
}

/* An open end of another command's would keep that one waiting for this one. */
static void close_others(int kept) {
  if (close_range(0, (unsigned)kept - 1, 0) == 0 && close_range((unsigned)kept + 1, ~0u, 0) == 0) return;
  for (int fd = 0; fd <= kept + 16; fd++)
    if (fd != kept) close(fd);
}

/*
 * The supervisor is the reaper of all that the command starts, setsid or not: nothing escapes from below it, and
 * once it ends nothing of the call is left.
 */
static void supervise(const struct command *c, const int ends[5][2]) {
  int status = ends[3][1];
  sigset_t all;
  int result, ending = 0;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, NULL);
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  pid_t main = fork();
  if (main < 0) fail(status, START_FORK);
  if (main == 0) become(c, ends);
  close_others(status);
  for (pid_t pid = 0; pid != main;) {
    pid = waitpid(-1, &result, 0);
    if (pid == main) ending = result;
  }
  pid_t left;
  while ((left = waitpid(-1, &result, WNOHANG)) > 0) continue;
  tell(status, NOTICE_ENDED, ending, left == 0);
  while (left >= 0) left = waitpid(-1, &result, 0);
  _exit(0);
}

static int terminal(int *near, int *far) {
  *near = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (*near < 0) return -1;
  int unlock = 0;
  if (ioctl(*near, TIOCSPTLCK, &unlock) < 0) return -1;
  *far = ioctl(*near, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
  return *far < 0 ? -1 : 0;
}

#define ROOM_FOR_OUTPUT 262144

/* Pairs of ends: ours first. */
static int open_ends(const struct command *c, int with_stdin, int ends[5][2]) {
  int pipe_ends[2];
  if (c->tty) {
    if (terminal(&ends[0][0], &ends[0][1]) < 0) return -1;
    for (int i = 1; i < 3; i++) ends[i][1] = fcntl(ends[0][1], F_DUPFD_CLOEXEC, 3);
    ends[1][0] = fcntl(ends[0][0], F_DUPFD_CLOEXEC, 3);
  } else {
    if (with_stdin) {
      if (pipe2(pipe_ends, O_CLOEXEC) < 0) return -1;
      ends[0][0] = pipe_ends[1], ends[0][1] = pipe_ends[0];
    } else if ((ends[0][1] = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0) return -1;
    for (int i = 1; i < 3; i++) {
      if (pipe2(ends[i], O_CLOEXEC) < 0) return -1;
      /* What says much is read in fewer pieces; where there is no room for more, it stays as it is. */
      fcntl(ends[i][0], F_SETPIPE_SZ, ROOM_FOR_OUTPUT);
    }
  }
  if (c->observed && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends[4]) < 0) return -1;
  return pipe2(ends[3], O_CLOEXEC);
}

int spawn(const struct command *c, int with_stdin, struct started *s, int *where) {
  int ends[5][2] = {{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}};
  int failed = 0;
  *where = START_PIPES;
  if (open_ends(c, with_stdin, ends) < 0) failed = errno;
  if (failed == 0) {
    stand("1000");
    s->supervisor = fork();
    if (s->supervisor == 0) supervise(c, ends);
    if (s->supervisor < 0) failed = errno, *where = START_FORK;
    stand(usual);
  }
  for (int i = 0; i < 5; i++) {
    if (ends[i][1] >= 0) close(ends[i][1]);
    if (failed && ends[i][0] >= 0) close(ends[i][0]);
    if (!failed && ends[i][0] >= 0) fcntl(ends[i][0], F_SETFL, O_NONBLOCK);
  }
  s->in = ends[0][0], s->out = ends[1][0], s->err = ends[2][0], s->status = ends[3][0], s->eye = ends[4][0];
  return failed;
}
