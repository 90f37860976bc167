#define _GNU_SOURCE
#include "seen.h"
#include "buffer.h"
#include "link.h"
#include "protocol.h"
#include <stdlib.h>
#include <string.h>

#define MOST_PROCESSES 4000
#define NEEDED_PROCESSES 64
#define SLOTS (1 << 15)
/* Of all commands together, and of one. */
#define MOST_BYTES_ALL (64u << 20)
#define MOST_BYTES (4u << 20)
/* What acts leave to processes. */
#define MOST_ACT_BYTES (3u << 20)
#define PIECE (256u << 10)

static const uint32_t most[ROOMS] = {[ROOM_TREE] = 4000, [ROOM_SCRATCH] = 3000, [ROOM_FILES] = 5000, [ROOM_SOCKETS] = 1000, [ROOM_CALLS] = 500};

struct process {
  pid_t pid, parent;
  uint64_t at;
  uint32_t from, length;
};

struct record {
  pid_t pid;
  char kind;
  uint32_t times, from, length, hash;
  uint64_t at;
};

struct seen {
  char *bytes;
  uint32_t used, room;
  struct process *processes;
  struct record *records;
  uint32_t process_count, process_room, record_count, record_room, in_room[ROOMS];
  uint64_t missed_processes, missed_acts;
  /* Bits by process: one beyond the bounds counts once, whatever it does. */
  uint8_t missed[SLOTS / 8];
  struct buffer touch;
  /* One more than the index of what hashes here. */
  uint32_t acts[SLOTS];
  uint16_t pids[SLOTS];
};

static uint64_t bytes_of_all;

struct seen *seen_new(void) { return calloc(1, sizeof(struct seen)); }

void seen_free(struct seen *s) {
  if (s == NULL) return;
  bytes_of_all -= s->room;
  buffer_free(&s->touch);
  free(s->bytes);
  free(s->processes);
  free(s->records);
  free(s);
}

/* Where these bytes are kept, or -1. */
static int64_t keep(struct seen *s, const void *bytes, size_t length) {
  if (s->used + length > s->room) {
    uint32_t room = s->room == 0 ? 16384 : s->room * 2;
    while (room < s->used + length) room *= 2;
    if (room > MOST_BYTES || bytes_of_all + room - s->room > MOST_BYTES_ALL) return -1;
    char *more = realloc(s->bytes, room);
    if (more == NULL) return -1;
    bytes_of_all += room - s->room;
    s->bytes = more;
    s->room = room;
  }
  int64_t from = s->used;
  memcpy(s->bytes + from, bytes, length);
  s->used += (uint32_t)length;
  return from;
}

/* Room for one more in a list. */
static int grow(void **list, uint32_t count, uint32_t *room, size_t size) {
  if (count < *room) return 1;
  uint32_t next = *room == 0 ? 64 : *room * 2;
  void *more = realloc(*list, next * size);
  if (more == NULL) return 0;
  *list = more;
  *room = next;
  return 1;
}

static uint32_t pid_slot(const struct seen *s, pid_t pid) {
  uint32_t at = (uint32_t)pid * 2654435761u % SLOTS;
  while (s->pids[at] != 0 && s->processes[s->pids[at] - 1].pid != pid) at = (at + 1) % SLOTS;
  return at;
}

int seen_knows(const struct seen *s, pid_t pid) { return s->pids[pid_slot(s, pid)] != 0; }

void seen_process(struct seen *s, pid_t pid, pid_t parent, const char *words, size_t length, uint64_t at, int needed) {
  int64_t from = -1;
  uint32_t bound = MOST_PROCESSES + (needed ? NEEDED_PROCESSES : 0);
  if (s->process_count < bound && grow((void **)&s->processes, s->process_count, &s->process_room, sizeof *s->processes))
    from = keep(s, words, length);
  if (from < 0) {
    uint32_t bit = (uint32_t)pid % SLOTS;
    s->missed_processes += (s->missed[bit / 8] >> bit % 8 & 1) == 0;
    s->missed[bit / 8] |= (uint8_t)(1u << bit % 8);
    return;
  }
  uint32_t slot = pid_slot(s, pid);
  s->processes[s->process_count++] = (struct process){pid, parent, at, (uint32_t)from, (uint32_t)length};
  s->pids[slot] = (uint16_t)s->process_count;
}

int seen_same(const struct seen *s, pid_t pid, const char *words, size_t length) {
  uint16_t found = s->pids[pid_slot(s, pid)];
  const struct process *p = &s->processes[found - 1];
  return found != 0 && p->length == length && memcmp(s->bytes + p->from, words, length) == 0;
}

void seen_touch(struct seen *s, const void *body, size_t length) { buffer_add(&s->touch, body, length); }

static uint32_t hash_of(char kind, pid_t pid, const unsigned char *body, size_t length) {
  uint32_t h = 2166136261u ^ (uint32_t)pid * 2654435761u ^ (unsigned char)kind;
  for (size_t i = 0; i < length; i++) h = (h ^ body[i]) * 16777619u;
  return h;
}

void seen_act(struct seen *s, enum room room, char kind, pid_t pid, const void *body, size_t length, uint64_t at) {
  uint32_t hash = hash_of(kind, pid, body, length), slot = hash % SLOTS;
  for (; s->acts[slot] != 0; slot = (slot + 1) % SLOTS) {
    struct record *r = &s->records[s->acts[slot] - 1];
    if (r->hash != hash || r->kind != kind || r->pid != pid || r->length != length) continue;
    if (memcmp(s->bytes + r->from, body, length) != 0) continue;
    r->times += r->times < UINT32_MAX;
    return;
  }
  int64_t from = -1;
  int fits = s->in_room[room] < most[room] && s->used + length <= MOST_ACT_BYTES;
  if (fits && grow((void **)&s->records, s->record_count, &s->record_room, sizeof *s->records))
    from = keep(s, body, length);
  if (from < 0) {
    s->missed_acts++;
    return;
  }
  s->in_room[room]++;
  s->records[s->record_count++] = (struct record){pid, kind, 1, (uint32_t)from, (uint32_t)length, hash, at};
  s->acts[slot] = s->record_count;
}

static void send_full(struct buffer *b, uint32_t call, size_t least) {
  if (buffer_used(b) < least) return;
  link_send(REP_SEEN, call, buffer_at(b), buffer_used(b));
  buffer_take(b, buffer_used(b));
}

void seen_send(const struct seen *s, uint32_t call) {
  struct buffer b = {0};
  for (uint32_t i = 0; i < s->process_count; i++) {
    const struct process *p = &s->processes[i];
    put_number(&b, 'p', 1);
    put_number(&b, 16 + p->length, 4);
    put_number(&b, (uint64_t)p->pid, 4);
    put_number(&b, (uint64_t)p->parent, 4);
    put_number(&b, p->at, 8);
    buffer_add(&b, s->bytes + p->from, p->length);
    send_full(&b, call, PIECE);
  }
  for (uint32_t i = 0; i < s->record_count; i++) {
    const struct record *r = &s->records[i];
    put_number(&b, 'a', 1);
    put_number(&b, 17 + r->length, 4);
    put_number(&b, (unsigned char)r->kind, 1);
    put_number(&b, (uint64_t)r->pid, 4);
    put_number(&b, r->times, 4);
    put_number(&b, r->at, 8);
    buffer_add(&b, s->bytes + r->from, r->length);
    send_full(&b, call, PIECE);
  }
  if (buffer_used(&s->touch) > 0) put_field(&b, 't', buffer_at(&s->touch), buffer_used(&s->touch));
  put_field_number(&b, 'P', s->missed_processes);
  put_field_number(&b, 'A', s->missed_acts);
  send_full(&b, call, 1);
  buffer_free(&b);
}
