/* One stream of a command: forwarded up to its head, then only the last bytes are kept; every byte is counted. */
#ifndef KEEP_H
#define KEEP_H
#include <stddef.h>
#include <stdint.h>

struct keep {
  uint64_t head, total;
  unsigned char *ring;
  size_t tail, size, at, held;
};

void keep_start(struct keep *k, uint64_t head, size_t tail);
/* How many of the next bytes still belong to the head. */
size_t keep_add(struct keep *k, const unsigned char *data, size_t length);
/* Where the next bytes may be read to, once none belongs to the head: so they are moved once. NULL where no tail is kept. */
unsigned char *keep_room(struct keep *k, size_t *length);
void keep_took(struct keep *k, size_t length);
/* The last bytes in order, as two runs. */
void keep_tail(const struct keep *k, const unsigned char *run[2], size_t length[2]);
uint64_t keep_lost(const struct keep *k);
void keep_free(struct keep *k);
#endif
