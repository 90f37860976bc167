#define _GNU_SOURCE
#include "witness.h"
#include "call.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* Words with NULs between them, within bounds; what was cut ends in an ellipsis. */
size_t witness_word(char *into, size_t have, const char *word) {
  size_t length = strlen(word), most = length > WORD_BYTES ? WORD_BYTES : length;
  if (have + most + 5 > WORDS_BYTES) most = have + 5 > WORDS_BYTES ? 0 : WORDS_BYTES - have - 5;
  if (have > 0) into[have++] = 0;
  memcpy(into + have, word, most);
  have += most;
  if (most < length) memcpy(into + have, "…", 3), have += 3;
  return have;
}

uint64_t witness_age(const struct observer *o) { return (uint64_t)(now_us() - o->begun); }

/* A process whose parent has ended is put below the leader of its group or session, or else below the command itself. */
pid_t witness_parent(const struct observer *o, const struct kin *k) {
  if (k->tgid == o->first) return 0;
  if (k->parent != o->supervisor && k->parent > 1) return k->parent;
  if (k->group != k->tgid && seen_knows(o->seen, k->group)) return k->group;
  if (k->session != k->tgid && seen_knows(o->seen, k->session)) return k->session;
  return o->first;
}

/* With those it comes from, so that a report can tell the way there. */
void witness_process(struct observer *o, pid_t pid, int needed) {
  struct kin k;
  char words[WORDS_BYTES];
  for (int depth = 0; depth < 32 && pid > 1 && pid != o->supervisor && !seen_knows(o->seen, pid); depth++) {
    if (!peek_kin(pid, &k)) return;
    size_t length = peek_words(pid, words, sizeof words);
    while (length > 0 && words[length - 1] == 0) length--;
    pid_t parent = witness_parent(o, &k);
    seen_process(o->seen, pid, parent, words, length, witness_age(o), needed);
    if (!seen_knows(o->seen, pid)) return;
    pid = parent;
  }
}

void witness_again(struct observer *o, pid_t pid) {
  struct kin k;
  char words[WORDS_BYTES];
  if (!seen_knows(o->seen, pid)) {
    witness_process(o, pid, 0);
    return;
  }
  size_t length = peek_words(pid, words, sizeof words);
  while (length > 0 && words[length - 1] == 0) length--;
  if (length == 0 || seen_same(o->seen, pid, words, length) || !peek_kin(pid, &k)) return;
  seen_process(o->seen, pid, witness_parent(o, &k), words, length, witness_age(o), 0);
}

static int below(const char *path, const char *folder) {
  size_t length = strlen(folder);
  return strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == 0 || folder[length - 1] == '/');
}

/* What every program reads of its system, and where everybody may write without saying anything. */
static int is_dull(char act, const char *path) {
  static const char *const system[] = {"/usr", "/lib", "/lib64", "/bin", "/sbin", "/etc/ld.so.cache", "/proc/self", "/proc/thread-self",
                                       "/proc/meminfo", "/proc/cpuinfo", "/proc/stat", "/proc/filesystems", "/proc/sys/vm", "/proc/sys/kernel/cap_last_cap",
                                       "/sys/fs/cgroup", "/sys/devices/system"};
  static const char *const devices[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/urandom", "/dev/random", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/pts", "/dev/ptmx"};
  for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
    if (below(path, devices[i])) return 1;
  if (act != ACT_READ) return 0;
  for (size_t i = 0; i < sizeof system / sizeof *system; i++)
    if (below(path, system[i])) return 1;
  return 0;
}

static enum room room_of(const struct observer *o, const char *path) {
  static const char *const caches[] = {".cache/", ".npm/", ".cargo/", ".m2/", ".gradle/", ".composer/", "go/", ".rustup/", ".node-gyp/"};
  for (int i = 0; i < o->tree_count; i++)
    if (below(path, o->trees[i])) return ROOM_TREE;
  if (below(path, "/tmp") || below(path, "/dev/shm")) return ROOM_SCRATCH;
  if (strncmp(path, "/home/", 6) != 0) return ROOM_FILES;
  const char *home = strchr(path + 6, '/');
  for (size_t i = 0; home != NULL && i < sizeof caches / sizeof *caches; i++)
    if (strncmp(home + 1, caches[i], strlen(caches[i])) == 0) return ROOM_SCRATCH;
  return ROOM_FILES;
}

void note_path(struct observer *o, pid_t pid, char act, const char *path) {
  size_t length = strlen(path);
  if (is_dull(act, path)) return;
  witness_process(o, pid, 0);
  seen_act(o->seen, room_of(o, path), act, pid, path, length > PATH_BYTES ? PATH_BYTES : length, witness_age(o));
}

void note_call(struct observer *o, pid_t pid, const char *name, const char *detail) {
  char body[256];
  int length = snprintf(body, sizeof body, "%s%c%s", name, 0, detail);
  witness_process(o, pid, 0);
  seen_act(o->seen, ROOM_CALLS, ACT_CALL, pid, body, length < (int)sizeof body ? (size_t)length : sizeof body - 1, witness_age(o));
}

void witness_touch(struct observer *o, int canary, pid_t pid, const char *path) {
  struct buffer b = {0};
  if (o->touched) return;
  o->touched = 1;
  if (pid > 0) witness_process(o, pid, 1);
  size_t length = strlen(path);
  put_number(&b, (uint64_t)canary, 4);
  put_number(&b, (uint64_t)pid, 4);
  put_number(&b, witness_age(o), 8);
  buffer_add(&b, path, length > PATH_BYTES ? PATH_BYTES : length);
  seen_touch(o->seen, buffer_at(&b), buffer_used(&b));
  buffer_free(&b);
}

/* By its name, or by what stands there. */
int witness_touches(struct observer *o, pid_t pid, const struct place *at, int nofollow) {
  struct stat s;
  if (o->canary_count == 0) return 0;
  int found = fstatat(AT_FDCWD, at->via, &s, nofollow ? AT_SYMLINK_NOFOLLOW : 0) == 0;
  for (int i = 0; i < o->canary_count; i++) {
    const struct canary *c = &o->canaries[i];
    int same = found && c->there && c->dev == s.st_dev && c->ino == s.st_ino;
    if (c->kind == 'a' || (!same && strcmp(c->at, at->path) != 0)) continue;
    witness_touch(o, i, pid, at->path);
    return 1;
  }
  return 0;
}

void note_socket(struct observer *o, pid_t pid, char act, char family, int port, const char *address) {
  char body[PATH_BYTES + 8];
  uint32_t number = port < 0 ? UINT32_MAX : (uint32_t)port;
  size_t length = strlen(address);
  if (length > PATH_BYTES) length = PATH_BYTES;
  body[0] = family;
  for (int i = 0; i < 4; i++) body[1 + i] = (char)(number >> (8 * i));
  memcpy(body + 5, address, length);
  witness_process(o, pid, 0);
  seen_act(o->seen, ROOM_SOCKETS, act, pid, body, length + 5, witness_age(o));
}

void note_name(struct observer *o, pid_t pid, const char *name, size_t length) {
  witness_process(o, pid, 0);
  seen_act(o->seen, ROOM_SOCKETS, ACT_NAME, pid, name, length, witness_age(o));
}
