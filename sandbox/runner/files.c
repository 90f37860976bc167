#define _GNU_SOURCE
#include "files.h"
#include "protocol.h"
#include "report.h"
#include "snapshot.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define PIECE (256u * 1024)
#define MOST_CONTENT (64u << 20)
/* A frame holds it, with what stands beside it. */
#define MOST_PEEKED (256u << 10)

void file_end(uint32_t call, int error, const char *what) {
  struct buffer b = {0};
  put_field_number(&b, 'e', (uint64_t)error);
  put_field_text(&b, 'w', what);
  link_send(REP_END, call, buffer_at(&b), buffer_used(&b));
  buffer_free(&b);
}

static void file_end_size(uint32_t call, uint64_t size) {
  struct buffer b = {0};
  put_field_number(&b, 'e', 0);
  put_field_number(&b, 'z', size);
  link_send(REP_END, call, buffer_at(&b), buffer_used(&b));
  buffer_free(&b);
}

int file_refusal(int fd, struct stat *s) {
  struct statfs fs;
  if (fstat(fd, s) < 0 || fstatfs(fd, &fs) < 0) return errno;
  if (S_ISDIR(s->st_mode)) return EISDIR;
  if (!S_ISREG(s->st_mode)) return EINVAL;
  switch ((unsigned long)fs.f_type) {
  case PROC_SUPER_MAGIC:
  case SYSFS_MAGIC:
  case CGROUP_SUPER_MAGIC:
  case CGROUP2_SUPER_MAGIC: return EPERM;
  default: return 0;
  }
}

static char *path_of(const struct frame *frame, uint64_t *mode, uint64_t *offset, uint64_t *most) {
  struct field field;
  char *path = NULL;
  for (const unsigned char *at = frame->payload; next_field(&at, frame->end, &field);) {
    if (field.name == 'p' && path == NULL) path = field_text(&field);
    else if (field.name == 'm') *mode = field_number(&field);
    else if (field.name == 'o') *offset = field_number(&field);
    else if (field.name == 'n') *most = field_number(&field);
  }
  return path == NULL ? strdup("") : path;
}

/* Opened first without reading, so that neither a FIFO nor a device is touched. */
static int open_to_read(const char *path, int links, struct stat *s, int *fd) {
  int look = open(path, O_PATH | O_CLOEXEC | links);
  if (look < 0) return errno;
  int error = file_refusal(look, s);
  close(look);
  if (error != 0) return error;
  *fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | links);
  if (*fd < 0) return errno;
  error = file_refusal(*fd, s);
  if (error != 0) close(*fd);
  return error;
}

void file_read_begin(struct file_call *f, const struct frame *frame) {
  uint64_t ignored, offset = 0, most = MOST_CONTENT;
  struct stat s;
  char *path = path_of(frame, &ignored, &offset, &most);
  int error = open_to_read(path, 0, &s, &f->fd);
  free(path);
  if (error == 0) {
    f->size = (uint64_t)s.st_size;
    f->left = most;
    if (lseek(f->fd, (off_t)offset, SEEK_SET) >= 0) return;
    error = errno;
    close(f->fd);
  }
  file_end(frame->call, error, "read");
  f->finished = 1;
}

int file_read_more(struct file_call *f, uint32_t call) {
  static unsigned char piece[PIECE];
  if (f->finished) return 0;
  ssize_t n = read(f->fd, piece, f->left < PIECE ? f->left : PIECE);
  if (n < 0 && errno == EINTR) return 1;
  if (n > 0) {
    link_send(REP_DATA, call, piece, (size_t)n);
    f->left -= (uint64_t)n;
    if (f->left > 0) return 1;
  }
  if (n < 0) file_end(call, errno, "read");
  else file_end_size(call, f->size);
  close(f->fd);
  f->finished = 1;
  return 1;
}

int file_peek(const char *path, uint64_t most, struct buffer *content) {
  struct stat s;
  int fd;
  if (most > MOST_PEEKED) most = MOST_PEEKED;
  int error = open_to_read(path, O_NOFOLLOW, &s, &fd);
  if (error != 0) return error;
  if ((uint64_t)s.st_size > most) error = EFBIG;
  while (error == 0) {
    size_t left = (size_t)most + 1 - buffer_used(content);
    ssize_t n = read(fd, buffer_room(content, left), left);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) error = errno;
    if (n <= 0) break;
    content->to += (size_t)n;
    if (buffer_used(content) > most) error = EFBIG;
  }
  close(fd);
  return error;
}

void file_write_begin(struct file_call *f, const struct frame *frame) {
  uint64_t ignored;
  f->mode = 0644;
  f->path = path_of(frame, &f->mode, &ignored, &ignored);
}

void file_write_more(struct file_call *f, const struct frame *frame) {
  size_t length = (size_t)(frame->end - frame->payload);
  if (buffer_used(&f->content) + length > MOST_CONTENT) f->size = EFBIG;
  else buffer_add(&f->content, frame->payload, length);
  struct buffer b = {0};
  put_field_number(&b, 'n', length);
  link_send(REP_CREDIT, frame->call, buffer_at(&b), buffer_used(&b));
  buffer_free(&b);
}

void file_write_end(struct file_call *f, uint32_t call) {
  int error = f->size != 0 ? (int)f->size : file_replace(f->path, f->mode, &f->content);
  if (error == 0) file_end_size(call, buffer_used(&f->content));
  else file_end(call, error, "write");
  free(f->path);
  buffer_free(&f->content);
  f->finished = 1;
}

static char kind_of(mode_t mode) {
  return S_ISREG(mode) ? 'f' : S_ISDIR(mode) ? 'd' : S_ISLNK(mode) ? 'l' : 'o';
}

/* u8 kind | u32 mode | u64 size | u64 seconds of change | u16 length | name */
static void put_entry(struct buffer *b, const struct stat *s, const char *name) {
  put_number(b, (unsigned char)kind_of(s->st_mode), 1);
  put_number(b, s->st_mode & 07777, 4);
  put_number(b, (uint64_t)s->st_size, 8);
  put_number(b, (uint64_t)s->st_mtim.tv_sec, 8);
  put_number(b, strlen(name), 2);
  buffer_add(b, name, strlen(name));
}

static void list(const struct frame *frame) {
  uint64_t ignored, most = 10000;
  struct buffer b = {0};
  struct stat s;
  char *path = path_of(frame, &ignored, &ignored, &most);
  uint64_t count = 0;
  DIR *folder = opendir(path);
  free(path);
  if (folder == NULL) {
    file_end(frame->call, errno, "list");
    return;
  }
  for (struct dirent *e; (e = readdir(folder)) != NULL;) {
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
    if (count++ < most && fstatat(dirfd(folder), e->d_name, &s, AT_SYMLINK_NOFOLLOW) == 0) put_entry(&b, &s, e->d_name);
  }
  closedir(folder);
  if (buffer_used(&b) > 0) link_send(REP_DATA, frame->call, buffer_at(&b), buffer_used(&b));
  buffer_free(&b);
  file_end_size(frame->call, count);
}

static void stat_one(const struct frame *frame) {
  uint64_t ignored;
  struct buffer b = {0};
  struct stat s;
  char *path = path_of(frame, &ignored, &ignored, &ignored);
  int error = lstat(path, &s) < 0 ? errno : 0;
  if (error == 0) {
    put_entry(&b, &s, path);
    link_send(REP_DATA, frame->call, buffer_at(&b), buffer_used(&b));
    buffer_free(&b);
  }
  free(path);
  file_end(frame->call, error, "stat");
}

void file_once(const struct frame *frame) {
  switch (frame->type) {
  case REQ_HELLO: report(frame); break;
  case REQ_LIST: list(frame); break;
  case REQ_STAT: stat_one(frame); break;
  case REQ_SNAPSHOT: snapshot_take(frame); break;
  case REQ_CHANGES: snapshot_changes(frame); break;
  default: file_end(frame->call, ENOSYS, "no such request");
  }
}
