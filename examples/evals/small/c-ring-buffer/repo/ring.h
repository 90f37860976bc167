#ifndef RING_H
#define RING_H

#define RING_SIZE 8

struct ring {
  unsigned char bytes[RING_SIZE];
  unsigned start;
  unsigned count;
};

/* 1 when it was done; 0 when there is no room, or nothing to take. */
int ring_put(struct ring *ring, unsigned char byte);
int ring_take(struct ring *ring, unsigned char *byte);

#endif
