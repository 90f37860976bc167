/* Bytes that grow at the end and are taken from the front. */
#ifndef BUFFER_H
#define BUFFER_H
#include <stddef.h>
#include <stdint.h>

struct buffer {
  unsigned char *data;
  size_t from, to, room;
};

size_t buffer_used(const struct buffer *b);
unsigned char *buffer_at(const struct buffer *b);
/* Room for `length` more bytes at the end; ends the runner when there is no memory for it. */
unsigned char *buffer_room(struct buffer *b, size_t length);
void buffer_add(struct buffer *b, const void *data, size_t length);
void buffer_take(struct buffer *b, size_t length);
void buffer_free(struct buffer *b);

void put_number(struct buffer *b, uint64_t value, int bytes);
void put_field(struct buffer *b, char name, const void *data, size_t length);
void put_field_number(struct buffer *b, char name, uint64_t value);
void put_field_text(struct buffer *b, char name, const char *text);

uint64_t get_number(const unsigned char *p, int bytes);

/* One field of a payload; false at the end of it or where it is cut short. */
struct field {
  char name;
  const unsigned char *data;
  size_t length;
};
int next_field(const unsigned char **at, const unsigned char *end, struct field *f);
uint64_t field_number(const struct field *f);
/* The field's bytes as a text of its own, cut at a NUL. */
char *field_text(const struct field *f);
#endif
