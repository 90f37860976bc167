#include "ring.h"

int ring_put(struct ring *ring, unsigned char byte) {
  ring->bytes[(ring->start + ring->count) % RING_SIZE] = byte;
  ring->count++;
  return 1;
}

int ring_take(struct ring *ring, unsigned char *byte) {
  if (ring->count == 0) return 0;
  *byte = ring->bytes[ring->start];
  ring->start++;
  ring->count--;
  return 1;
}
