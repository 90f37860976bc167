#include "keep.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void keep_start(struct keep *k, uint64_t head, size_t tail) {
  memset(k, 0, sizeof *k);
  k->head = head;
  k->tail = tail;
}

size_t keep_add(struct keep *k, const unsigned char *data, size_t length) {
  uint64_t left = k->total < k->head ? k->head - k->total : 0;
  size_t front = left < length ? (size_t)left : length;
  k->total += length;
  data += front;
  length -= front;
  if (length == 0 || k->tail == 0) return front;
  if (k->ring == NULL && (k->ring = malloc(k->tail)) == NULL) _exit(71);
  if (length > k->tail) {
    data += length - k->tail;
    length = k->tail;
  }
  size_t first = k->tail - k->at < length ? k->tail - k->at : length;
  memcpy(k->ring + k->at, data, first);
  memcpy(k->ring, data + first, length - first);
  k->at = (k->at + length) % k->tail;
  k->held = k->held + length < k->tail ? k->held + length : k->tail;
  return front;
}

void keep_tail(const struct keep *k, const unsigned char *run[2], size_t length[2]) {
  size_t start = k->held < k->tail ? 0 : k->at;
  run[0] = k->ring + start;
  length[0] = k->held - start < k->held ? k->held - start : k->held;
  run[1] = k->ring;
  length[1] = k->held - length[0];
}

uint64_t keep_lost(const struct keep *k) {
  uint64_t kept = (k->total < k->head ? k->total : k->head) + k->held;
  return k->total - kept;
}

void keep_free(struct keep *k) {
  free(k->ring);
  k->ring = NULL;
}
