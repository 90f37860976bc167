/* A file written all at once or not at all. */
#define _GNU_SOURCE
#include "files.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static int write_all(int fd, const struct buffer *b) {
  for (size_t done = 0; done < buffer_used(b);) {
    ssize_t n = write(fd, buffer_at(b) + done, buffer_used(b) - done);
    if (n < 0 && errno != EINTR) return errno;
    if (n > 0) done += (size_t)n;
  }
  return fsync(fd) < 0 && errno != EINVAL && errno != EROFS ? errno : 0;
}

/* The folders above a new file; why the first one that is missing cannot be made, or 0. */
static int make_folders(char *path) {
  int error = 0;
  for (char *slash = strchr(path + 1, '/'); slash != NULL && error == 0; slash = strchr(slash + 1, '/')) {
    struct stat there;
    *slash = 0;
    if (mkdir(path, 0755) < 0 && errno != EEXIST) {
      error = errno;
      if (stat(path, &there) == 0) error = 0; /* some filesystems refuse before they look */
    }
    *slash = '/';
  }
  return error;
}

/* An empty file beside the target, under a name that no command can have taken before. */
static int open_beside(const char *target, size_t folder, char *temporary, size_t size) {
  uint64_t number;
  if (getrandom(&number, sizeof number, 0) != sizeof number) return -1;
  snprintf(temporary, size, "%.*s.harness-%016llx.tmp", (int)folder, target, (unsigned long long)number);
  return open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
}

/*
 * All or nothing: the content is whole before the first byte is written, then it is written beside its place and
 * renamed over it. Nothing is left beside it unless the container is killed within these few system calls.
 */
int file_replace(const char *path, uint64_t mode, const struct buffer *content) {
  char temporary[PATH_MAX + 64];
  struct stat old;
  if (path[0] != '/') return EINVAL;
  int error = 0;
  char *target = realpath(path, NULL);
  if (target == NULL && errno == ENOENT) {
    struct stat link;
    if (lstat(path, &link) == 0) return ELOOP; /* a link to nothing that is here */
    target = strdup(path);
    if (target != NULL) error = make_folders(target);
  }
  if (target == NULL) return errno;
  int look = open(target, O_PATH | O_CLOEXEC);
  if (look >= 0) {
    error = file_refusal(look, &old);
    close(look);
    mode = old.st_mode & 07777;
    if (error == 0 && access(target, W_OK) < 0) error = errno;
  }
  size_t folder = (size_t)(strrchr(target, '/') + 1 - target);
  int fd = error == 0 ? open_beside(target, folder, temporary, sizeof temporary) : -1;
  if (error == 0 && fd < 0) error = errno;
  if (fd >= 0) {
    error = write_all(fd, content);
    if (error == 0 && fchmod(fd, mode & 01777) < 0) error = errno;
    close(fd);
    if (error == 0 && rename(temporary, target) < 0) error = errno;
    if (error != 0) unlink(temporary);
  }
  free(target);
  return error;
}
