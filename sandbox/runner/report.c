#define _GNU_SOURCE
#include "report.h"
#include "ask.h"
#include "buffer.h"
#include "guard.h"
#include "protocol.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void put_file(struct buffer *b, char name, const char *path) {
  struct buffer text = {0};
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  for (ssize_t n; fd >= 0 && (n = read(fd, buffer_room(&text, 65536), 65536)) > 0;) text.to += (size_t)n;
  if (fd >= 0) close(fd);
  put_field(b, name, buffer_at(&text), buffer_used(&text));
  buffer_free(&text);
}

static void put_stat(struct buffer *b, const char *path) {
  struct stat s;
  char *text = NULL;
  int length = lstat(path, &s) < 0
                   ? asprintf(&text, "-:%d:%s", errno, path)
                   : asprintf(&text, "%lu:%lu:%o:%s", (unsigned long)s.st_dev, (unsigned long)s.st_ino, s.st_mode, path);
  if (length < 0) _exit(71);
  put_field(b, 'f', text, (size_t)length);
  free(text);
}

void report(const struct frame *frame) {
  struct buffer b = {0};
  struct field field;
  put_file(&b, 's', "/proc/self/status");
  put_file(&b, 'm', "/proc/self/mountinfo");
  put_file(&b, 'n', "/proc/net/dev");
  put_file(&b, 'r', "/proc/net/route");
  put_file(&b, 'l', "/proc/self/limits");
  put_file(&b, 'h', "/proc/sys/kernel/hostname");
  for (const unsigned char *at = frame->payload; next_field(&at, frame->end, &field);) {
    if (field.name == 'g') ask_open();
    if (field.name == 'w') guard_add(field_text(&field));
    if (field.name != 'p') continue;
    char *path = field_text(&field);
    put_stat(&b, path);
    free(path);
  }
  link_send(REP_HELLO, frame->call, buffer_at(&b), buffer_used(&b));
  buffer_free(&b);
}
