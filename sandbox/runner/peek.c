#define _GNU_SOURCE
#include "peek.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KNOWN 128

static struct peek known[KNOWN];
static int begun;

static ssize_t read_proc(pid_t pid, const char *name, char *into, size_t size) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  ssize_t n = read(fd, into, size - 1);
  close(fd);
  if (n >= 0) into[n] = 0;
  return n;
}

static pid_t number_in(const char *text, const char *name) {
  const char *at = strstr(text, name);
  return at == NULL ? 0 : (pid_t)strtol(at + strlen(name), NULL, 10);
}

int peek_kin(pid_t pid, struct kin *k) {
  char text[2048];
  memset(k, 0, sizeof *k);
  if (pid <= 0 || read_proc(pid, "status", text, sizeof text) <= 0) return 0;
  k->tgid = number_in(text, "\nTgid:");
  k->parent = number_in(text, "\nPPid:");
  if (read_proc(pid, "stat", text, sizeof text) <= 0) return 0;
  char *end = strrchr(text, ')');
  if (end != NULL && sscanf(end + 1, " %*c %*d %d %d", &k->group, &k->session) != 2) k->group = k->session = 0;
  return k->tgid > 0;
}

int peek_below(pid_t pid, pid_t root) {
  struct kin k;
  for (int depth = 0; pid > 1 && depth < 4096; depth++) {
    if (pid == root) return 1;
    if (!peek_kin(pid, &k)) return 0;
    pid = k.parent;
  }
  return 0;
}

size_t peek_words(pid_t pid, char *into, size_t size) {
  ssize_t n = read_proc(pid, "cmdline", into, size);
  return n < 0 ? 0 : (size_t)n;
}

static void drop(struct peek *p) {
  if (p->mem >= 0) close(p->mem);
  *p = (struct peek){0, 0, -1, 0};
}

static struct peek *slot(pid_t tid) {
  if (!begun)
    for (int i = 0; i < KNOWN; i++) known[i].mem = -1;
  begun = 1;
  return &known[tid % KNOWN];
}

struct peek *peek_at(pid_t tid, int *fresh) {
  struct peek *p = slot(tid);
  struct kin k;
  *fresh = p->tid != tid;
  if (!*fresh) return p;
  drop(p);
  if (!peek_kin(tid, &k)) return NULL;
  p->tid = tid;
  p->tgid = k.tgid;
  return p;
}

void peek_forget(pid_t tid) {
  struct peek *p = slot(tid);
  if (p->tid == tid) drop(p);
}

/* A descriptor of memory outlives what it shows: it gives nothing then, and is opened anew. */
ssize_t peek_bytes(struct peek *p, uint64_t address, void *into, size_t size) {
  for (int fresh = 0;; fresh = 1) {
    if (p->mem < 0) {
      char path[64];
      snprintf(path, sizeof path, "/proc/%d/mem", p->tid);
      p->mem = open(path, O_RDONLY | O_CLOEXEC);
      if (p->mem < 0) return -1;
      fresh = 1;
    }
    ssize_t n = pread(p->mem, into, size, (off_t)address);
    if (n > 0) return n;
    if (fresh) {
      errno = EFAULT;
      return -1;
    }
    close(p->mem);
    p->mem = -1;
  }
}

ssize_t peek_text(struct peek *p, uint64_t address, char *into, size_t size) {
  size_t have = 0;
  while (have < size - 1) {
    /* Up to the end of the page first: what lies behind may not be there. */
    size_t most = 4096 - (size_t)((address + have) % 4096);
    if (most > size - 1 - have) most = size - 1 - have;
    ssize_t n = peek_bytes(p, address + have, into + have, most);
    if (n < 0) return -1;
    char *end = memchr(into + have, 0, (size_t)n);
    if (end != NULL) return end - into;
    have += (size_t)n;
  }
  into[have] = 0;
  return (ssize_t)have;
}

/* In place, by the text alone. */
static void normalise(char *path) {
  char *to = path;
  for (char *at = path; *at != 0;) {
    size_t length = strcspn(at + 1, "/") + 1;
    if (length == 1 || (length == 2 && at[1] == '.')) at += length;
    else if (length == 3 && at[1] == '.' && at[2] == '.') {
      while (to > path && *--to != '/') continue;
      at += length;
    } else {
      memmove(to, at, length);
      to += length;
      at += length;
    }
  }
  if (to == path) *to++ = '/';
  *to = 0;
}

/* Names that mean something else for each process. */
static void own_name(const struct peek *p, const char *name, char *via, size_t size) {
  static const char *const own[][2] = {{"/proc/self/", ""}, {"/proc/thread-self/", ""}, {"/dev/fd/", "fd/"}};
  for (int i = 0; i < 3; i++) {
    size_t length = strlen(own[i][0]);
    if (strncmp(name, own[i][0], length) != 0) continue;
    snprintf(via, size, "/proc/%d/%s%s", p->tid, own[i][1], name + length);
    return;
  }
  snprintf(via, size, "%s", name);
}

void peek_resolve(struct peek *p, int dir, const char *name, struct place *at) {
  char link[64];
  if (name[0] == '/') {
    snprintf(at->path, sizeof at->path, "%s", name);
    own_name(p, name, at->via, sizeof at->via);
    normalise(at->path);
    return;
  }
  if (dir == AT_FDCWD) snprintf(link, sizeof link, "/proc/%d/cwd", p->tid);
  else snprintf(link, sizeof link, "/proc/%d/fd/%d", p->tid, dir);
  const char *between = name[0] == 0 ? "" : "/";
  snprintf(at->via, sizeof at->via, "%s%s%s", link, between, name);
  ssize_t n = readlink(link, at->path, PATH_MAX);
  /* Where it cannot be told, or is longer than the kernel tells, the link stands for it. */
  if (n <= 0) n = snprintf(at->path, sizeof at->path, "%s", link);
  snprintf(at->path + n, sizeof at->path - (size_t)n, "%s%s", between, name);
  if (at->path[0] == '/') normalise(at->path);
}

int peek_place(struct peek *p, int dir, uint64_t address, struct place *at) {
  char name[PATH_MAX];
  if (peek_text(p, address, name, sizeof name) < 0) return -1;
  peek_resolve(p, dir, name, at);
  return 0;
}

int peek_descriptor(struct peek *p, int fd, struct place *at) {
  peek_resolve(p, fd, "", at);
  return 0;
}
