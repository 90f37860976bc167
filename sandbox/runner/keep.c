#include "keep.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void keep_start(struct keep *k, uint64_t head, size_t tail) {
  memset(k, 0, sizeof *k);
  k->head = head;
  k->tail = tail;
}

/* More than the tail, so that a read may be long; it is touched as far as it is used. */
#define SPARE 196608

static void make_ring(struct keep *k) {
  if (k->ring != NULL) return;
  if (k->tail > SIZE_MAX - SPARE) _exit(71);
  k->size = k->tail + SPARE;
  if ((k->ring = malloc(k->size)) == NULL) _exit(71);
}

size_t keep_add(struct keep *k, const unsigned char *data, size_t length) {
  uint64_t left = k->total < k->head ? k->head - k->total : 0;
  size_t front = left < length ? (size_t)left : length;
  k->total += front;
  data += front;
  length -= front;
  while (length > 0) {
    size_t room = length;
    unsigned char *into = keep_room(k, &room);
    size_t part = room < length ? room : length;
    if (into != NULL) memcpy(into, data, part);
    keep_took(k, part);
    data += part;
    length -= part;
  }
  return front;
}

unsigned char *keep_room(struct keep *k, size_t *length) {
  if (k->tail == 0) return NULL;
  make_ring(k);
  *length = k->size - k->at;
  return k->ring + k->at;
}

void keep_took(struct keep *k, size_t length) {
  k->total += length;
  if (k->tail == 0) return;
  k->at = (k->at + length) % k->size;
  k->held = k->held + length < k->tail ? k->held + length : k->tail;
}

void keep_tail(const struct keep *k, const unsigned char *run[2], size_t length[2]) {
  size_t behind = k->held < k->at ? k->held : k->at;
  run[0] = k->ring + k->size - (k->held - behind);
  length[0] = k->held - behind;
  run[1] = k->ring + k->at - behind;
  length[1] = behind;
}

uint64_t keep_lost(const struct keep *k) {
  uint64_t kept = (k->total < k->head ? k->total : k->head) + k->held;
  return k->total - kept;
}

void keep_free(struct keep *k) {
  free(k->ring);
  k->ring = NULL;
}
