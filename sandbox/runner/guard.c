#define _GNU_SOURCE
#include "guard.h"
#include "buffer.h"
#include "link.h"
#include "protocol.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef STATX_MNT_ID
#define STATX_MNT_ID 0x1000u
#endif

/* Kernels before 5.8 tell no mount: device and inode alone are compared there. */
struct seen {
  int there;
  uint32_t major, minor;
  uint64_t ino, mount;
};

struct guarded {
  char *path;
  struct seen seen;
};

static struct guarded *all;
static int count, lost, mounts = -1, notices = -1;
static struct buffer approved;

/* gVisor of 2022 refuses the flag about automounts, and knows none. */
static int look_at(const char *path, struct statx *s) {
  int flags = AT_SYMLINK_NOFOLLOW | AT_STATX_DONT_SYNC;
  if (statx(AT_FDCWD, path, flags | AT_NO_AUTOMOUNT, STATX_INO | STATX_MNT_ID, s) == 0) return 0;
  return errno == EINVAL ? statx(AT_FDCWD, path, flags, STATX_INO | STATX_MNT_ID, s) : -1;
}

static struct seen look(const char *path) {
  struct statx s;
  struct seen seen = {0};
  if (look_at(path, &s) < 0) return seen;
  seen.there = 1;
  seen.major = s.stx_dev_major, seen.minor = s.stx_dev_minor;
  seen.ino = s.stx_ino;
  if (s.stx_mask & STATX_MNT_ID) seen.mount = s.stx_mnt_id;
  return seen;
}

static int same(const struct seen *a, const struct seen *b) {
  return a->there && b->there && a->major == b->major && a->minor == b->minor && a->ino == b->ino && a->mount == b->mount;
}

static const char *after_fields(const char *at, int fields) {
  while (fields-- > 0) at += strcspn(at, " "), at += *at == ' ';
  return at;
}

/* Of each mount its number, place and options. Not which part of its file system it shows: a workspace may be moved. */
static void read_mounts(struct buffer *kept) {
  struct buffer text = {0};
  lseek(mounts, 0, SEEK_SET);
  for (ssize_t n; (n = read(mounts, buffer_room(&text, 16384), 16384)) > 0;) text.to += (size_t)n;
  put_number(&text, 0, 1);
  char *save = NULL;
  for (char *line = strtok_r((char *)buffer_at(&text), "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
    const char *place = after_fields(line, 4);
    buffer_add(kept, line, strcspn(line, " ") + 1);
    buffer_add(kept, place, (size_t)(after_fields(place, 2) - place));
  }
  buffer_free(&text);
}

void guard_open(void) {
  mounts = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
  if (mounts >= 0) read_mounts(&approved);
  notices = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
}

void guard_add(char *path) {
  struct guarded *more = realloc(all, (size_t)(count + 1) * sizeof *all);
  if (more == NULL) _exit(71);
  all = more;
  all[count++] = (struct guarded){path, look(path)};
  /* A rename moves the mount and changes no table of mounts. Refused, it is found by the next comparison. */
  if (notices >= 0 && inotify_add_watch(notices, path, IN_MOVE_SELF | IN_DELETE_SELF | IN_DONT_FOLLOW) < 0) return;
}

int guard_watch(struct pollfd *fds) {
  fds[0] = (struct pollfd){mounts, POLLPRI, 0};
  fds[1] = (struct pollfd){notices, POLLIN, 0};
  return GUARD_FDS;
}

static int mounts_differ(void) {
  struct buffer now = {0};
  read_mounts(&now);
  int differ = buffer_used(&now) != buffer_used(&approved) ||
               memcmp(buffer_at(&now), buffer_at(&approved), buffer_used(&now)) != 0;
  buffer_free(&now);
  return differ;
}

void guard_hear(const struct pollfd *fds) {
  char notice[4096];
  if (fds[0].revents != 0) lost |= mounts < 0 || mounts_differ();
  if (fds[1].revents == 0) return;
  while (read(notices, notice, sizeof notice) > 0) continue;
  guard_lost();
}

int guard_lost(void) {
  for (int i = 0; i < count && !lost; i++) {
    struct seen now = look(all[i].path);
    lost = !same(&now, &all[i].seen);
  }
  return lost;
}

int guard_was_lost(void) { return lost; }

void guard_tell(void) {
  struct buffer b = {0};
  for (int i = 0; i < count; i++) {
    struct seen now = look(all[i].path);
    if (!same(&now, &all[i].seen)) put_field_text(&b, 'p', all[i].path);
  }
  link_send(REP_UNGUARDED, 0, buffer_at(&b), buffer_used(&b));
  buffer_free(&b);
}
