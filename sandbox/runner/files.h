/* Files for the harness's own tools. Links are followed as the commands would follow them; what is not a regular
 * file, or lies on a file system of the kernel's, is refused: the runner may see more there than a command. */
#ifndef FILES_H
#define FILES_H
#include "buffer.h"
#include "link.h"
#include <sys/stat.h>

struct file_call {
  int fd, finished;
  uint64_t left, size;
  char *path;
  uint64_t mode;
  struct buffer content;
};

/* 0, or why this open file is none that a tool may read or replace. */
int file_refusal(int fd, struct stat *s);
/* 0 or errno; an older file keeps its mode (replace.c). */
int file_replace(const char *path, uint64_t mode, const struct buffer *content);
/*
 * 0 or errno; a regular file of at most `most` bytes that is no link. EFBIG for a larger one. What goes on in the box
 * may change it meanwhile: it is never waited for, and no more than that is ever read.
 */
int file_peek(const char *path, uint64_t most, struct buffer *content);
void file_end(uint32_t call, int error, const char *what);
void file_read_begin(struct file_call *f, const struct frame *frame);
/* Sends one piece; false when nothing came of it. */
int file_read_more(struct file_call *f, uint32_t call);
void file_write_begin(struct file_call *f, const struct frame *frame);
void file_write_more(struct file_call *f, const struct frame *frame);
void file_write_end(struct file_call *f, uint32_t call);
/* HELLO, LIST, STAT, SNAPSHOT and CHANGES: answered at once. */
void file_once(const struct frame *frame);
#endif
