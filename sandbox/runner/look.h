/* One call that waits to be made: what it is about. */
#ifndef LOOK_H
#define LOOK_H
#include "observe.h"
#include "peek.h"
#include "told.h"

struct told_call {
  struct observer *o;
  struct peek *who;
  const struct told *told;
  const uint64_t *args;
  /* By which the kernel knows it as long as it waits. */
  uint64_t id;
};

void look(const struct told_call *t);
#endif
