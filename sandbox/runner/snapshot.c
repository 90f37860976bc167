#define _GNU_SOURCE
#include "snapshot.h"
#include "buffer.h"
#include "call.h"
#include "files.h"
#include "protocol.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEEPEST 512

struct entry {
  char *path;
  ino_t ino;
  off_t size;
  mode_t mode;
  struct timespec changed;
};

struct tree {
  struct entry *entries;
  size_t count, room, most;
  int incomplete;
};

static struct tree before;
static char *root, **left_out;
static int left_out_count;

static void clear(struct tree *t) {
  for (size_t i = 0; i < t->count; i++) free(t->entries[i].path);
  free(t->entries);
  memset(t, 0, sizeof *t);
}

static int is_left_out(const char *path) {
  for (int i = 0; i < left_out_count; i++)
    if (strcmp(left_out[i], path) == 0) return 1;
  return 0;
}

static void add(struct tree *t, const char *path, const struct stat *s) {
  if (t->count == t->most) {
    t->incomplete = 1;
    return;
  }
  if (t->count == t->room) {
    t->room = t->room == 0 ? 1024 : t->room * 2;
    t->entries = realloc(t->entries, t->room * sizeof *t->entries);
    if (t->entries == NULL) _exit(71);
  }
  char *own = strdup(path);
  if (own == NULL) _exit(71);
  t->entries[t->count++] = (struct entry){own, s->st_ino, s->st_size, s->st_mode, s->st_ctim};
}

#define BEAT_MS 1000

/* A tree may take longer than the harness waits for a sign of life. */
static void beat(void) {
  static int64_t beaten;
  if (now_ms() - beaten < BEAT_MS) return;
  beaten = now_ms();
  link_send(REP_PONG, 0, NULL, 0);
  link_flush();
}

/* Folders themselves are not listed: what is in them is. Links are entries and never followed. */
static void walk(struct tree *t, int parent, const char *name, struct buffer *path, int depth) {
  int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  DIR *folder = fd < 0 ? NULL : fdopendir(fd);
  if (folder == NULL || depth > DEEPEST) {
    t->incomplete = 1;
    if (folder != NULL) closedir(folder);
    else if (fd >= 0) close(fd);
    return;
  }
  for (struct dirent *e; (e = readdir(folder)) != NULL && !(t->incomplete && t->count == t->most);) {
    struct stat s;
    size_t mark = path->to;
    beat();
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
    if (mark > 0) buffer_add(path, "/", 1);
    buffer_add(path, e->d_name, strlen(e->d_name) + 1);
    path->to--;
    const char *here = (const char *)path->data;
    if (!is_left_out(here)) {
      if (e->d_type == DT_DIR) walk(t, fd, e->d_name, path, depth + 1);
      else if (fstatat(fd, e->d_name, &s, AT_SYMLINK_NOFOLLOW) == 0) {
        if (S_ISDIR(s.st_mode)) walk(t, fd, e->d_name, path, depth + 1);
        else add(t, here, &s);
      }
    }
    path->to = mark;
  }
  closedir(folder);
}

static int by_path(const void *a, const void *b) {
  return strcmp(((const struct entry *)a)->path, ((const struct entry *)b)->path);
}

static void look(struct tree *t, size_t most) {
  struct buffer path = {0};
  t->most = most;
  walk(t, AT_FDCWD, root, &path, 0);
  buffer_free(&path);
  if (t->count > 0) qsort(t->entries, t->count, sizeof *t->entries, by_path);
}

static void end(uint32_t call, int incomplete) {
  struct buffer b = {0};
  put_field_number(&b, 'e', 0);
  put_field_number(&b, 'z', before.count);
  put_field_number(&b, 'i', (uint64_t)incomplete);
  link_send(REP_END, call, buffer_at(&b), buffer_used(&b));
  buffer_free(&b);
}

void snapshot_take(const struct frame *frame) {
  struct field field;
  size_t most = 500000;
  clear(&before);
  for (int i = 0; i < left_out_count; i++) free(left_out[i]);
  free(left_out);
  free(root);
  left_out = NULL, left_out_count = 0, root = NULL;
  for (const unsigned char *at = frame->payload; next_field(&at, frame->end, &field);) {
    if (field.name == 'p' && root == NULL) root = field_text(&field);
    else if (field.name == 'n') most = field_number(&field);
    else if (field.name == 'x') {
      left_out = realloc(left_out, (size_t)(left_out_count + 1) * sizeof *left_out);
      if (left_out == NULL) _exit(71);
      left_out[left_out_count++] = field_text(&field);
    }
  }
  if (root == NULL) {
    file_end(frame->call, EINVAL, "snapshot");
    return;
  }
  look(&before, most);
  end(frame->call, before.incomplete);
}

/* u8 A, M or D | u8 kind f, l or o | u32 mode | u16 length | path below the root */
static void put_change(struct buffer *b, char what, const struct entry *e) {
  put_number(b, (unsigned char)what, 1);
  put_number(b, S_ISREG(e->mode) ? 'f' : S_ISLNK(e->mode) ? 'l' : 'o', 1);
  put_number(b, e->mode & 07777, 4);
  put_number(b, strlen(e->path), 2);
  buffer_add(b, e->path, strlen(e->path));
}

static int differs(const struct entry *a, const struct entry *b) {
  return a->ino != b->ino || a->size != b->size || a->mode != b->mode || a->changed.tv_sec != b->changed.tv_sec ||
         a->changed.tv_nsec != b->changed.tv_nsec;
}

void snapshot_changes(const struct frame *frame) {
  struct tree now = {0};
  struct buffer b = {0};
  if (root == NULL) {
    file_end(frame->call, EINVAL, "changes without a snapshot");
    return;
  }
  look(&now, before.most);
  for (size_t i = 0, j = 0; i < before.count || j < now.count;) {
    int order = i == before.count ? 1 : j == now.count ? -1 : by_path(&before.entries[i], &now.entries[j]);
    if (order < 0) put_change(&b, 'D', &before.entries[i++]);
    else if (order > 0) put_change(&b, 'A', &now.entries[j++]);
    else {
      if (differs(&before.entries[i], &now.entries[j])) put_change(&b, 'M', &now.entries[j]);
      i++, j++;
    }
  }
  if (buffer_used(&b) > 0) link_send(REP_DATA, frame->call, buffer_at(&b), buffer_used(&b));
  buffer_free(&b);
  end(frame->call, before.incomplete || now.incomplete);
  clear(&now);
}
