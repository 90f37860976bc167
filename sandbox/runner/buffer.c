#include "buffer.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

size_t buffer_used(const struct buffer *b) { return b->to - b->from; }

unsigned char *buffer_at(const struct buffer *b) { return b->data + b->from; }

unsigned char *buffer_room(struct buffer *b, size_t length) {
  if (b->from > 0 && b->to + length > b->room) {
    memmove(b->data, b->data + b->from, b->to - b->from);
    b->to -= b->from;
    b->from = 0;
  }
  if (b->to + length > b->room) {
    size_t room = b->room * 2 > b->to + length ? b->room * 2 : b->to + length;
    unsigned char *data = realloc(b->data, room);
    if (data == NULL) _exit(71);
    b->data = data;
    b->room = room;
  }
  return b->data + b->to;
}

void buffer_add(struct buffer *b, const void *data, size_t length) {
  memcpy(buffer_room(b, length), data, length);
  b->to += length;
}

void buffer_take(struct buffer *b, size_t length) {
  b->from += length;
  if (b->from == b->to) b->from = b->to = 0;
}

void buffer_free(struct buffer *b) {
  free(b->data);
  memset(b, 0, sizeof *b);
}

void put_number(struct buffer *b, uint64_t value, int bytes) {
  unsigned char *p = buffer_room(b, (size_t)bytes);
  for (int i = 0; i < bytes; i++) p[i] = (unsigned char)(value >> (8 * i));
  b->to += (size_t)bytes;
}

void put_field(struct buffer *b, char name, const void *data, size_t length) {
  put_number(b, (unsigned char)name, 1);
  put_number(b, length, 4);
  buffer_add(b, data, length);
}

void put_field_number(struct buffer *b, char name, uint64_t value) {
  put_number(b, (unsigned char)name, 1);
  put_number(b, 8, 4);
  put_number(b, value, 8);
}

void put_field_text(struct buffer *b, char name, const char *text) { put_field(b, name, text, strlen(text)); }

uint64_t get_number(const unsigned char *p, int bytes) {
  uint64_t value = 0;
  for (int i = bytes - 1; i >= 0; i--) value = value << 8 | p[i];
  return value;
}

int next_field(const unsigned char **at, const unsigned char *end, struct field *f) {
  if (end - *at < 5) return 0;
  f->name = (char)**at;
  f->length = get_number(*at + 1, 4);
  f->data = *at + 5;
  if ((size_t)(end - f->data) < f->length) return 0;
  *at = f->data + f->length;
  return 1;
}

uint64_t field_number(const struct field *f) { return f->length == 8 ? get_number(f->data, 8) : 0; }

char *field_text(const struct field *f) {
  char *text = malloc(f->length + 1);
  if (text == NULL) _exit(71);
  memcpy(text, f->data, f->length);
  text[f->length] = 0;
  return text;
}
