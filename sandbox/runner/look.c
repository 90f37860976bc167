#define _GNU_SOURCE
#include "look.h"
#include "witness.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#define MOST_WORDS 64
#define MOST_MESSAGES 16
#define HIDES "hides from observation"

/* What cannot be read because the process is closed to others is told as that; a pointer to nowhere is nothing. */
static void unreadable(const struct told_call *t) {
  if (errno != EACCES && errno != EPERM) return;
  /* Who was ended meanwhile is closed as well: its call is never made. */
  if (ioctl(t->o->fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &t->id) < 0) return;
  /* Before its first program the command is still the runner's own, which is closed to all. */
  if (t->who->tgid == t->o->first && !t->o->started && t->told->doing == DO_EXEC) return;
  t->o->hidden = t->who->tgid;
  note_call(t->o, t->who->tgid, t->told->name, HIDES ": its arguments cannot be read");
}

static int argument(const struct told_call *t, int index) { return index < 0 ? AT_FDCWD : (int)t->args[index]; }

static int place(const struct told_call *t, int dir, int path, struct place *at) {
  int folder = argument(t, dir);
  if (path < 0 || (dir >= 0 && t->args[path] == 0)) return peek_descriptor(t->who, folder, at);
  if (peek_place(t->who, folder, t->args[path], at) == 0) return 0;
  unreadable(t);
  return -1;
}

/* Where something stands nothing is made: the kernel says so to whoever asks on each step of the way to a folder. */
static int is_there(const struct place *at) {
  struct stat s;
  return lstat(at->via, &s) == 0;
}

#define FLAGS(t) ((t)->told->flags < 0 ? 0 : (int)(t)->args[(t)->told->flags])

static void do_path(const struct told_call *t) {
  static struct place at;
  if (place(t, t->told->dir, t->told->path, &at) < 0) return;
  if (witness_touches(t->o, t->who->tgid, &at, t->told->act == ACT_REMOVE || (FLAGS(t) & AT_SYMLINK_NOFOLLOW) != 0)) return;
  if (t->told->act == ACT_MAKE && is_there(&at)) return;
  note_path(t->o, t->who->tgid, t->told->act, at.path);
}

static char act_of_open(int flags, const struct place *at) {
  struct stat s;
  int writes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0;
  if ((flags & O_TMPFILE) == O_TMPFILE || (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL)) return ACT_MAKE;
  if ((flags & O_CREAT) != 0 && stat(at->via, &s) < 0) return ACT_MAKE;
  return writes ? ACT_WRITE : ACT_READ;
}

/* Of openat2 flags and ways stand in memory. What cannot be read is taken for a plain reading. */
struct how {
  uint64_t flags, mode, resolve;
};
#define IN_ROOT 0x10

static void read_how(const struct told_call *t, struct how *how) {
  memset(how, 0, sizeof *how);
  if (t->told->doing == DO_CREAT) how->flags = O_CREAT | O_WRONLY | O_TRUNC;
  else if (t->told->doing != DO_OPEN2) how->flags = (uint64_t)FLAGS(t);
  else if (peek_bytes(t->who, t->args[t->told->other], how, sizeof *how) < (ssize_t)sizeof *how) unreadable(t);
}

/* Where a folder is the root of a look, a name from the root is one from there. */
static int place_below(const struct told_call *t, struct place *at) {
  char name[PATH_MAX];
  if (peek_text(t->who, t->args[t->told->path], name, sizeof name) < 0) {
    unreadable(t);
    return -1;
  }
  peek_resolve(t->who, argument(t, t->told->dir), name + strspn(name, "/"), at);
  return 0;
}

/* What gives no content is none of the acts, as with the other calls. */
static int gives_no_content(int flags) {
  return (flags & O_PATH) != 0 || ((flags & O_DIRECTORY) != 0 && (flags & O_TMPFILE) != O_TMPFILE);
}

static void do_open(const struct told_call *t) {
  static struct place at;
  struct how how;
  read_how(t, &how);
  int flags = (int)how.flags;
  if (t->told->doing == DO_OPEN2 && gives_no_content(flags)) return;
  if ((how.resolve & IN_ROOT) != 0 ? place_below(t, &at) < 0 : place(t, t->told->dir, t->told->path, &at) < 0) return;
  if (witness_touches(t->o, t->who->tgid, &at, 0)) return;
  note_path(t->o, t->who->tgid, act_of_open(flags, &at), at.path);
}

/* What is renamed goes and comes; what is linked comes. */
static void do_two(const struct told_call *t) {
  static struct place from, to;
  const struct told *told = t->told;
  if (place(t, told->dir, told->path, &from) < 0 || place(t, told->other_dir, told->other, &to) < 0) return;
  if (witness_touches(t->o, t->who->tgid, &from, 1) || witness_touches(t->o, t->who->tgid, &to, 1)) return;
  int there = is_there(&to);
  if (told->act != 0) note_path(t->o, t->who->tgid, told->act, from.path);
  else if (there) return;
  note_path(t->o, t->who->tgid, there ? ACT_WRITE : ACT_MAKE, to.path);
}

static const char *base(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash == NULL ? path : slash + 1;
}

/* The program's path stands first where the process calls itself otherwise. */
static size_t read_words(const struct told_call *t, const char *path, char *into) {
  uint64_t pointers[MOST_WORDS + 1], list = t->args[t->told->other];
  char word[WORD_BYTES + 2];
  ssize_t n = list == 0 ? 0 : peek_bytes(t->who, list, pointers, sizeof pointers);
  int count = n < 0 ? 0 : (int)(n / (ssize_t)sizeof *pointers);
  size_t have = 0;
  for (int i = 0; i < count && pointers[i] != 0; i++) {
    if (i == MOST_WORDS || have + 8 > WORDS_BYTES) return witness_word(into, have, "…");
    if (peek_text(t->who, pointers[i], word, sizeof word) < 0) break;
    have = witness_word(into, have, i == 0 && strcmp(base(word), base(path)) != 0 ? path : word);
  }
  return have > 0 ? have : witness_word(into, 0, path);
}

/* What is not there, or no program, is only looked for. */
static void do_exec(const struct told_call *t) {
  static struct place at;
  struct stat s;
  struct kin k;
  char words[WORDS_BYTES + 16];
  if (place(t, t->told->dir, t->told->path, &at) < 0) return;
  if (witness_touches(t->o, t->who->tgid, &at, 0)) return;
  if (stat(at.via, &s) < 0 || !S_ISREG(s.st_mode) || access(at.via, X_OK) < 0) return;
  size_t length = read_words(t, at.path, words);
  if (!peek_kin(t->who->tgid, &k)) return;
  pid_t parent = witness_parent(t->o, &k);
  witness_process(t->o, parent, 0);
  seen_process(t->o->seen, t->who->tgid, parent, words, length, witness_age(t->o), 0);
  note_path(t->o, t->who->tgid, ACT_RUN, at.path);
  if (strncmp(at.path, "/memfd:", 7) == 0) note_call(t->o, t->who->tgid, t->told->name, "runs a program that is no file");
  /* From here on it has another memory, under its process's number. */
  pid_t tgid = t->who->tgid;
  peek_forget(t->who->tid);
  peek_forget(tgid);
}

static void do_unix(const struct told_call *t, char act, const struct sockaddr_un *at, size_t length) {
  static struct place where;
  char name[sizeof at->sun_path + 2];
  size_t size = length - sizeof at->sun_family;
  if (size == 0) return;
  memcpy(name, at->sun_path, size);
  name[size] = 0;
  if (name[0] == 0) {
    for (size_t i = 0; i < size; i++)
      if (name[i] == 0) name[i] = '@';
    note_socket(t->o, t->who->tgid, act, 'u', -1, name);
    return;
  }
  peek_resolve(t->who, AT_FDCWD, name, &where);
  if (strcmp(where.path, "/var/run/nscd/socket") == 0) return;
  if (!witness_touches(t->o, t->who->tgid, &where, 0)) note_socket(t->o, t->who->tgid, act, 'u', -1, where.path);
}

static void do_ip(const struct told_call *t, char act, const void *address, int family, int port) {
  char text[INET6_ADDRSTRLEN];
  const struct in6_addr *six = address;
  if (family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(six)) family = AF_INET, address = &six->s6_addr[12];
  if (inet_ntop(family, address, text, sizeof text) == NULL) return;
  for (int i = 0; i < t->o->canary_count && act != ACT_LISTEN; i++) {
    const struct canary *c = &t->o->canaries[i];
    if (c->kind != 'a' || strcmp(c->at, text) != 0) continue;
    witness_touch(t->o, i, t->who->tgid, text);
    return;
  }
  note_socket(t->o, t->who->tgid, act, 'i', port, text);
}

static void do_address(const struct told_call *t, char act, uint64_t address, uint64_t length) {
  union {
    struct sockaddr any;
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    struct sockaddr_un un;
    struct sockaddr_storage all;
  } at;
  char family[32];
  if (address == 0 || length < sizeof at.any.sa_family) return;
  if (length > sizeof at.all) length = sizeof at.all;
  memset(&at, 0, sizeof at);
  if (peek_bytes(t->who, address, &at, length) < (ssize_t)sizeof at.any.sa_family) {
    unreadable(t);
    return;
  }
  switch (at.any.sa_family) {
  case AF_UNSPEC:
  case AF_NETLINK: return;
  case AF_INET: do_ip(t, act, &at.in.sin_addr, AF_INET, ntohs(at.in.sin_port)); return;
  case AF_INET6: do_ip(t, act, &at.in6.sin6_addr, AF_INET6, ntohs(at.in6.sin6_port)); return;
  case AF_UNIX: do_unix(t, act, &at.un, length > sizeof at.un ? sizeof at.un : length); return;
  default:
    snprintf(family, sizeof family, "family %d", at.any.sa_family);
    note_socket(t->o, t->who->tgid, act, 'o', -1, family);
  }
}

#define QUESTION_HEAD 12
#define QUESTION_TAIL 4

/* The name of a question to DNS as resolvers put it: one, and nothing answered yet. Its length, or 0 where it is anything else. */
static size_t asked_name(const unsigned char *b, size_t size, char *name) {
  static const unsigned char counts[] = {0, 1, 0, 0, 0, 0, 0};
  size_t at = QUESTION_HEAD, have = 0;
  if (size < QUESTION_HEAD + 1 + QUESTION_TAIL || (b[2] & 0xf8) != 0) return 0;
  if (memcmp(b + 4, counts, sizeof counts) != 0 || b[11] > 1) return 0;
  while (at < size && b[at] != 0) {
    size_t length = b[at];
    if (length > 63 || at + 1 + length >= size || have + length + 1 > 254) return 0;
    if (have > 0) name[have++] = '.';
    for (size_t i = 0; i < length; i++) name[have++] = b[at + 1 + i] == 0 ? '?' : (char)b[at + 1 + i];
    at += 1 + length;
  }
  /* Then its type, its class (the internet's), and of the rest at most one record of options. */
  if (at + 1 + QUESTION_TAIL > size || b[at + 3] != 0 || b[at + 4] != 1) return 0;
  return b[11] == 0 && at + 1 + QUESTION_TAIL != size ? 0 : have;
}

static void do_question(const struct told_call *t, uint64_t bytes, uint64_t size) {
  unsigned char body[QUESTION_MOST];
  char name[256];
  if (t->o->touched || bytes == 0 || size > sizeof body) return;
  ssize_t n = peek_bytes(t->who, bytes, body, size);
  size_t length = n < 0 ? 0 : asked_name(body, (size_t)n, name);
  if (length > 0) note_name(t->o, t->who->tgid, name, length);
}

static void do_bind(const struct told_call *t) {
  struct observer *o = t->o;
  do_address(t, ACT_LISTEN, t->args[1], t->args[2]);
  o->bound[o->next_bound].pid = t->who->tgid;
  o->bound[o->next_bound].fd = (int)t->args[0];
  o->next_bound = (o->next_bound + 1) % OBSERVER_BOUND;
}

static void do_listen(const struct told_call *t) {
  for (int i = 0; i < OBSERVER_BOUND; i++)
    if (t->o->bound[i].pid == t->who->tgid && t->o->bound[i].fd == (int)t->args[0]) return;
  note_socket(t->o, t->who->tgid, ACT_LISTEN, 'o', -1, "a socket without an address of its own");
}

/* Of several messages the first ones are looked at. */
static void do_messages(const struct told_call *t, size_t stride, uint64_t count) {
  for (uint64_t i = 0; i < count && i < MOST_MESSAGES && !t->o->touched; i++) {
    struct msghdr m;
    if (peek_bytes(t->who, t->args[1] + i * stride, &m, sizeof m) != sizeof m) {
      unreadable(t);
      return;
    }
    do_address(t, ACT_SEND, (uint64_t)(uintptr_t)m.msg_name, m.msg_namelen);
    struct iovec part;
    if (m.msg_iovlen == 0 || peek_bytes(t->who, (uint64_t)(uintptr_t)m.msg_iov, &part, sizeof part) != sizeof part) continue;
    do_question(t, (uint64_t)(uintptr_t)part.iov_base, part.iov_len);
  }
}

static pid_t target_of(const struct told_call *t) {
  char path[64], text[1024];
  if (strcmp(t->told->name, "pidfd_send_signal") != 0) return (pid_t)t->args[0];
  snprintf(path, sizeof path, "/proc/%d/fdinfo/%d", t->who->tid, (int)t->args[0]);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
  if (fd >= 0) close(fd);
  if (n <= 0) return 0;
  text[n] = 0;
  const char *at = strstr(text, "Pid:");
  return at == NULL ? 0 : (pid_t)strtol(at + 4, NULL, 10);
}

/* A signal to what the command began itself is its own affair. */
static void do_signal(const struct told_call *t) {
  char detail[96];
  struct kin k;
  pid_t target = target_of(t);
  int index = t->told->nr == SYS_tgkill || t->told->nr == SYS_rt_tgsigqueueinfo ? 2 : 1;
  int number = (int)t->args[index];
  if (number == 0 || target == 0) return;
  if (target == -1) snprintf(detail, sizeof detail, "signal %d to every process", number);
  else {
    pid_t one = target < 0 ? -target : target;
    if (!peek_kin(one, &k) || peek_below(one, t->o->supervisor)) {
      if (one != t->o->supervisor) return;
    }
    snprintf(detail, sizeof detail, "signal %d to process %d, which is not its own", number, one);
  }
  note_call(t->o, t->who->tgid, t->told->name, detail);
}

void look(const struct told_call *t) {
  switch (t->told->doing) {
  case DO_PATH:
  case DO_FD: do_path(t); break;
  case DO_OPEN:
  case DO_OPEN2:
  case DO_CREAT: do_open(t); break;
  case DO_TWO: do_two(t); break;
  case DO_EXEC: do_exec(t); break;
  case DO_CONNECT: do_address(t, ACT_CONNECT, t->args[1], t->args[2]); break;
  case DO_BIND: do_bind(t); break;
  case DO_LISTEN: do_listen(t); break;
  case DO_SEND:
    do_address(t, ACT_SEND, t->args[4], t->args[5]);
    do_question(t, t->args[1], t->args[2]);
    break;
  case DO_MESSAGE: do_messages(t, sizeof(struct msghdr), 1); break;
  case DO_MESSAGES: do_messages(t, sizeof(struct mmsghdr), t->args[2]); break;
  case DO_SIGNAL: do_signal(t); break;
  case DO_HIDE: t->o->hidden = t->who->tgid, note_call(t->o, t->who->tgid, "prctl", HIDES); break;
  case DO_CALL: note_call(t->o, t->who->tgid, t->told->name, ""); break;
  }
}

