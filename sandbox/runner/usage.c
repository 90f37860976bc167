#include "usage.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define V1 "/sys/fs/cgroup/memory/"
#define V2 "/sys/fs/cgroup/"

/* Kept open: a reading is one system call. */
static int memory_fd, peak_fd, limit_fd, kills_fd, pids_fd, refused_fd;

static int open_either(const char *v2, const char *v1) {
  int fd = open(v2, O_RDONLY | O_CLOEXEC);
  return fd >= 0 ? fd : open(v1, O_RDONLY | O_CLOEXEC);
}

void usage_open(void) {
  memory_fd = open_either(V2 "memory.current", V1 "memory.usage_in_bytes");
  peak_fd = open_either(V2 "memory.peak", V1 "memory.max_usage_in_bytes");
  limit_fd = open_either(V2 "memory.max", V1 "memory.limit_in_bytes");
  kills_fd = open_either(V2 "memory.events", V1 "memory.oom_control");
  pids_fd = open_either(V2 "pids.current", "/sys/fs/cgroup/pids/pids.current");
  refused_fd = open_either(V2 "pids.events", "/sys/fs/cgroup/pids/pids.events");
}

/* The number behind `name`, or the file's only number; 0 when it cannot be read. */
static uint64_t number(int fd, const char *name) {
  char text[512];
  ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof text - 1, 0);
  if (n <= 0) return 0;
  text[n] = 0;
  const char *at = text;
  if (name != NULL) {
    at = strstr(text, name);
    if (at == NULL) return 0;
    at += strlen(name);
  }
  return strtoull(at, NULL, 10);
}

void usage_sample(uint64_t *memory, uint64_t *pids) {
  *memory = number(memory_fd, NULL);
  *pids = number(pids_fd, NULL);
}

void usage_now(struct usage *u) {
  usage_sample(&u->memory, &u->pids);
  u->memory_peak = number(peak_fd, NULL);
  u->memory_limit = number(limit_fd, NULL);
  u->memory_kills = number(kills_fd, "oom_kill ");
  u->pids_refused = number(refused_fd, "max ");
}
