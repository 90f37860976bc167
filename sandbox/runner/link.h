/* The authenticated wire to the harness: frames in, frames out, never blocking. */
#ifndef LINK_H
#define LINK_H
#include <stddef.h>
#include <stdint.h>

struct frame {
  uint8_t type;
  uint32_t call;
  const unsigned char *payload, *end;
};

void link_open(void);
/* Reads what is there. False when the harness has gone. */
int link_fill(void);
/* The next whole frame; its bytes hold until the next call. False when there is none yet. */
int link_next(struct frame *f);
void link_send(uint8_t type, uint32_t call, const void *payload, size_t length);
/* Writes what the pipe takes. False when the harness has gone. */
int link_flush(void);
size_t link_waiting(void);
/* HOLD and RESUME. Any other frame while it is held ends the runner. */
void link_hold(const struct frame *f);
int link_held(void);
void link_resume(const struct frame *f);
#endif
