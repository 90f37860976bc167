#include <assert.h>
#include "ring.h"

int main(void) {
  struct ring ring = {0};
  unsigned char byte = 0;
  assert(ring_take(&ring, &byte) == 0);
  for (int round = 0; round < 50; round++) {
    for (int i = 0; i < RING_SIZE; i++) assert(ring_put(&ring, (unsigned char)(round + i)) == 1);
    assert(ring_put(&ring, 99) == 0);
    assert(ring.count == RING_SIZE);
    for (int i = 0; i < 3; i++) assert(ring_take(&ring, &byte) == 1 && byte == (unsigned char)(round + i));
    for (int i = 0; i < 3; i++) assert(ring_put(&ring, (unsigned char)(200 + i)) == 1);
    for (int i = 3; i < RING_SIZE; i++) assert(ring_take(&ring, &byte) == 1 && byte == (unsigned char)(round + i));
    for (int i = 0; i < 3; i++) assert(ring_take(&ring, &byte) == 1 && byte == 200 + i);
    assert(ring_take(&ring, &byte) == 0);
  }
  return 0;
}
