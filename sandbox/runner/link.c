#include "link.h"
#include "buffer.h"
#include "protocol.h"
#include "sha256.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Exit codes of the runner: 65 a frame that is not the harness's. */
#define FORGED 65

static struct buffer in, out;
static struct hmac_key key;
static uint64_t received, sent;
static size_t taken;
static int has_key, held;

void link_open(void) {
  for (int fd = 0; fd < 2; fd++) fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

int link_fill(void) {
  for (;;) {
    ssize_t n = read(0, buffer_room(&in, 65536), 65536);
    if (n > 0) in.to += (size_t)n;
    else if (n < 0 && errno == EINTR) continue;
    else return n < 0 && errno == EAGAIN;
    if (n < 65536) return 1;
  }
}

static int take_key(void) {
  if (has_key) return 1;
  if (buffer_used(&in) < MAGIC_BYTES + KEY_BYTES) return 0;
  if (memcmp(buffer_at(&in), MAGIC, MAGIC_BYTES) != 0) _exit(FORGED);
  hmac_prepare(&key, buffer_at(&in) + MAGIC_BYTES, KEY_BYTES);
  explicit_bzero(buffer_at(&in), MAGIC_BYTES + KEY_BYTES);
  buffer_take(&in, MAGIC_BYTES + KEY_BYTES);
  has_key = 1;
  return 1;
}

static int same(const unsigned char *a, const unsigned char *b, size_t length) {
  unsigned char difference = 0;
  for (size_t i = 0; i < length; i++) difference |= a[i] ^ b[i];
  return difference == 0;
}

int link_next(struct frame *f) {
  unsigned char tag[32];
  if (taken > 0) buffer_take(&in, taken);
  taken = 0;
  if (!take_key() || buffer_used(&in) < 4) return 0;
  size_t length = get_number(buffer_at(&in), 4);
  if (length < HEAD_BYTES + TAG_BYTES || length > HEAD_BYTES + MAX_PAYLOAD + TAG_BYTES) _exit(FORGED);
  if (buffer_used(&in) < 4 + length) return 0;
  const unsigned char *body = buffer_at(&in) + 4;
  hmac(&key, body, length - TAG_BYTES, tag);
  if (!same(tag, body + length - TAG_BYTES, TAG_BYTES) || get_number(body + 5, 8) != received) _exit(FORGED);
  received++;
  taken = 4 + length;
  f->type = body[0];
  f->call = (uint32_t)get_number(body + 1, 4);
  f->payload = body + HEAD_BYTES;
  f->end = body + length - TAG_BYTES;
  if (held && f->type != REQ_RESUME) _exit(FORGED);
  return 1;
}

/* Counts begin anew with a key: no frame of an earlier one fits. */
static void change_key(const struct frame *f) {
  if (f->end - f->payload != KEY_BYTES) _exit(FORGED);
  hmac_prepare(&key, f->payload, KEY_BYTES);
  explicit_bzero((unsigned char *)f->payload, KEY_BYTES);
  received = sent = 0;
}

void link_hold(const struct frame *f) {
  link_send(REP_HELD, f->call, NULL, 0);
  change_key(f);
  held = 1;
}

int link_held(void) { return held; }

void link_resume(const struct frame *f) {
  if (!held) _exit(FORGED);
  change_key(f);
  held = 0;
}

static void send_one(uint8_t type, uint32_t call, const void *payload, size_t length) {
  unsigned char tag[32];
  put_number(&out, HEAD_BYTES + length + TAG_BYTES, 4);
  size_t body = buffer_used(&out);
  put_number(&out, type, 1);
  put_number(&out, call, 4);
  put_number(&out, sent++, 8);
  if (length > 0) buffer_add(&out, payload, length);
  hmac(&key, buffer_at(&out) + body, HEAD_BYTES + length, tag);
  buffer_add(&out, tag, TAG_BYTES);
}

void link_send(uint8_t type, uint32_t call, const void *payload, size_t length) {
  const unsigned char *at = payload;
  while (length > MAX_PAYLOAD) {
    send_one(type, call, at, MAX_PAYLOAD);
    at += MAX_PAYLOAD;
    length -= MAX_PAYLOAD;
  }
  send_one(type, call, at, length);
}

int link_flush(void) {
  while (buffer_used(&out) > 0) {
    ssize_t n = write(1, buffer_at(&out), buffer_used(&out));
    if (n > 0) buffer_take(&out, (size_t)n);
    else if (n < 0 && errno == EINTR) continue;
    else return n < 0 && errno == EAGAIN;
  }
  return 1;
}

size_t link_waiting(void) { return buffer_used(&out); }
