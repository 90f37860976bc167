#define _GNU_SOURCE
#include "snapshot.h"
#include "buffer.h"
#include "call.h"
#include "files.h"
#include "protocol.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DEEPEST 512
/* Bytes of one path; the kernel itself takes no more than a quarter of it at once. */
#define LONGEST 16384
#define PIECE 262144

/* What is known of a file, as it lies in a tree: not aligned. */
struct facts {
  ino_t ino;
  off_t size;
  mode_t mode;
  struct timespec changed;
};

/*
 * The files of a tree in the order of their paths. Of each: facts, u32 bytes that its path shares with the one before,
 * u32 the others, and these. Full paths of many deep files would be more than the box's memory.
 */
struct tree {
  struct buffer entries;
  size_t count, most;
  int incomplete;
};

/* A path as it goes from entry to entry. */
struct path {
  char text[LONGEST + 1];
  size_t length;
};

/* Takes an entry; its path is whole. */
typedef void (*taker)(void *to, const struct path *path, const struct facts *facts);

/*
 * `held`: names of all folders that are open at once, files and folders. A tree within its bound never has more files and
 * folders than `most` of each; without this one a deep tree of full folders would be more than the box's memory.
 */
struct walker {
  size_t count, most, held;
  int incomplete;
  struct path path;
  taker take;
  void *to;
};

static struct tree before;
static char *root, **left_out;
static int left_out_count;

static int is_left_out(const char *path) {
  for (int i = 0; i < left_out_count; i++)
    if (strcmp(left_out[i], path) == 0) return 1;
  return 0;
}

static size_t shared_by(const struct path *a, const struct path *b) {
  size_t most = a->length < b->length ? a->length : b->length, same = 0;
  while (same < most && a->text[same] == b->text[same]) same++;
  return same;
}

#define BEAT_MS 1000

/* A tree may take longer than the harness waits for a sign of life. */
static void beat(void) {
  static int64_t beaten;
  if (now_ms() - beaten < BEAT_MS) return;
  beaten = now_ms();
  link_send(REP_PONG, 0, NULL, 0);
  link_flush();
}

static void put_path(struct buffer *b, struct path *last, const struct path *path) {
  size_t shared = shared_by(last, path);
  put_number(b, shared, 4);
  put_number(b, path->length - shared, 4);
  buffer_add(b, path->text + shared, path->length - shared);
  memcpy(last->text + shared, path->text + shared, path->length - shared + 1);
  last->length = path->length;
}

/* One name of a folder; a folder's own ends in a slash, so that names are in the order of the paths below them. */
struct name {
  char *text;
  int folder;
  struct facts facts;
};

struct names {
  struct name *list;
  size_t count, room;
};

/* Sorting a large folder takes its time, too. */
static int by_name(const void *a, const void *b) {
  static unsigned compared;
  if (++compared % 4096 == 0) beat();
  return strcmp(((const struct name *)a)->text, ((const struct name *)b)->text);
}

static void add_name(struct names *names, const char *text, const struct stat *s) {
  if (names->count == names->room) {
    names->room = names->room == 0 ? 64 : names->room * 2;
    names->list = realloc(names->list, names->room * sizeof *names->list);
    if (names->list == NULL) _exit(71);
  }
  size_t length = strlen(text);
  char *own = malloc(length + 2);
  if (own == NULL) _exit(71);
  memcpy(own, text, length + 1);
  int folder = S_ISDIR(s->st_mode);
  if (folder) memcpy(own + length, "/", 2);
  names->list[names->count++] =
      (struct name){own, folder, {s->st_ino, s->st_size, s->st_mode, s->st_ctim}};
}

static void free_names(struct walker *w, struct names *names) {
  w->held -= names->count;
  for (size_t i = 0; i < names->count; i++) free(names->list[i].text);
  free(names->list);
}

static int is_full(const struct walker *w) { return w->count == w->most; }

static void read_names(struct walker *w, int fd, DIR *folder, struct names *names) {
  for (struct dirent *e; (e = readdir(folder)) != NULL;) {
    struct stat s;
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
    if (names->count >= w->most || w->held >= 2 * w->most) {
      w->incomplete = 1;
      return;
    }
    beat();
    if (fstatat(fd, e->d_name, &s, AT_SYMLINK_NOFOLLOW) < 0) continue;
    add_name(names, e->d_name, &s);
    w->held++;
  }
}

static void walk(struct walker *w, int parent, const char *name, int depth);

static void walk_name(struct walker *w, int fd, struct name *name, int depth) {
  struct path *path = &w->path;
  size_t mark = path->length, length = strlen(name->text) - (size_t)name->folder;
  if (mark + 1 + length > LONGEST) {
    w->incomplete = 1;
    return;
  }
  if (mark > 0) path->text[path->length++] = '/';
  memcpy(path->text + path->length, name->text, length);
  path->length += length;
  path->text[path->length] = '\0';
  if (!is_left_out(path->text)) {
    if (name->folder) {
      name->text[length] = '\0';
      walk(w, fd, name->text, depth + 1);
    } else if (is_full(w)) w->incomplete = 1;
    else {
      w->count++;
      w->take(w->to, path, &name->facts);
    }
  }
  path->length = mark;
  path->text[mark] = '\0';
}

/* Folders themselves are not taken: what is in them is. Links are entries and never followed. */
static void walk(struct walker *w, int parent, const char *name, int depth) {
  struct names names = {0};
  int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  DIR *folder = fd < 0 ? NULL : fdopendir(fd);
  if (folder == NULL || depth > DEEPEST) {
    w->incomplete = 1;
    if (folder != NULL) closedir(folder);
    else if (fd >= 0) close(fd);
    return;
  }
  read_names(w, fd, folder, &names);
  if (names.count > 0) qsort(names.list, names.count, sizeof *names.list, by_name);
  for (size_t i = 0; i < names.count && !(w->incomplete && is_full(w)); i++) {
    beat();
    walk_name(w, fd, &names.list[i], depth);
  }
  free_names(w, &names);
  closedir(folder);
}

/* Keeps a tree. */
struct keeper {
  struct tree *tree;
  struct path last;
};

static void keep(void *to, const struct path *path, const struct facts *facts) {
  struct keeper *k = to;
  buffer_add(&k->tree->entries, facts, sizeof *facts);
  put_path(&k->tree->entries, &k->last, path);
  k->tree->count++;
}

static void end(uint32_t call, int incomplete, uint64_t bytes) {
  struct buffer b = {0};
  put_field_number(&b, 'e', 0);
  put_field_number(&b, 'z', before.count);
  put_field_number(&b, 'i', (uint64_t)incomplete);
  put_field_number(&b, 'b', bytes);
  link_send(REP_END, call, buffer_at(&b), buffer_used(&b));
  buffer_free(&b);
}

void snapshot_take(const struct frame *frame) {
  static struct walker w;
  static struct keeper keeper;
  struct field field;
  size_t most = 500000;
  buffer_free(&before.entries);
  memset(&before, 0, sizeof before);
  for (int i = 0; i < left_out_count; i++) free(left_out[i]);
  free(left_out);
  free(root);
  left_out = NULL, left_out_count = 0, root = NULL;
  for (const unsigned char *at = frame->payload; next_field(&at, frame->end, &field);) {
    if (field.name == 'p' && root == NULL) root = field_text(&field);
    else if (field.name == 'n') most = field_number(&field);
    else if (field.name == 'x') {
      left_out = realloc(left_out, (size_t)(left_out_count + 1) * sizeof *left_out);
      if (left_out == NULL) _exit(71);
      left_out[left_out_count++] = field_text(&field);
    }
  }
  if (root == NULL) {
    file_end(frame->call, EINVAL, "snapshot");
    return;
  }
  before.most = most;
  memset(&keeper, 0, sizeof keeper);
  keeper.tree = &before;
  memset(&w, 0, sizeof w);
  w.most = most, w.take = keep, w.to = &keeper;
  walk(&w, AT_FDCWD, root, 0);
  before.incomplete = w.incomplete;
  end(frame->call, before.incomplete, 0);
}

/* The entries of `before` one after the other, beside the tree as it is now, which takes its place where it is to be renewed. */
struct teller {
  uint32_t call;
  size_t at, left;
  uint64_t bytes;
  int renews;
  struct timespec latest;
  struct tree now;
  struct keeper keeper;
  struct facts facts;
  struct path old, last;
  struct buffer out;
};

/* The next one that was there before; false behind the last. */
static int next_old(struct teller *t) {
  if (t->left == 0) return 0;
  const unsigned char *entry = buffer_at(&before.entries) + t->at;
  memcpy(&t->facts, entry, sizeof t->facts);
  size_t shared = get_number(entry + sizeof t->facts, 4), length = get_number(entry + sizeof t->facts + 4, 4);
  memcpy(t->old.text + shared, entry + sizeof t->facts + 8, length);
  t->old.length = shared + length;
  t->old.text[t->old.length] = '\0';
  t->at += sizeof t->facts + 8 + length;
  return 1;
}

/* u8 A, M or D | u8 kind f, l or o | u32 mode | u32 bytes shared with the path before | u32 length | the others */
static void put_change(struct teller *t, char what, mode_t mode, const struct path *path) {
  struct buffer *b = &t->out;
  put_number(b, (unsigned char)what, 1);
  put_number(b, S_ISREG(mode) ? 'f' : S_ISLNK(mode) ? 'l' : 'o', 1);
  put_number(b, mode & 07777, 4);
  put_path(b, &t->last, path);
  if (buffer_used(b) < PIECE) return;
  link_send(REP_DATA, t->call, buffer_at(b), buffer_used(b));
  buffer_take(b, buffer_used(b));
}

static int differs(const struct facts *a, const struct facts *b) {
  return a->ino != b->ino || a->size != b->size || a->mode != b->mode || a->changed.tv_sec != b->changed.tv_sec ||
         a->changed.tv_nsec != b->changed.tv_nsec;
}

static void forth(struct teller *t) {
  t->left--;
  next_old(t);
}

static int is_later(const struct timespec *a, const struct timespec *b) {
  return a->tv_sec > b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec > b->tv_nsec);
}

#define TICKS_MS 20

/*
 * What changes once more in the tick of the clock in which it was seen looks as it did then. The harness reads it behind
 * this look: once that tick is over, whatever comes later is seen the next time.
 */
static void outlast(const struct timespec *latest) {
  struct timespec now, pause = {0, 1000000};
  for (int i = 0; i < TICKS_MS; i++) {
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    if (is_later(&now, latest)) return;
    nanosleep(&pause, NULL);
  }
}

static void put_content(struct teller *t, char what, const struct path *path, const struct facts *facts) {
  put_change(t, what, facts->mode, path);
  if (S_ISREG(facts->mode)) t->bytes += (uint64_t)facts->size;
  if (is_later(&facts->changed, &t->latest)) t->latest = facts->changed;
}

static void tell(void *to, const struct path *path, const struct facts *facts) {
  struct teller *t = to;
  int order = 1;
  if (t->renews) keep(&t->keeper, path, facts);
  while (t->left > 0 && (order = strcmp(t->old.text, path->text)) < 0) {
    put_change(t, 'D', t->facts.mode, &t->old);
    forth(t);
  }
  if (t->left == 0 || order > 0) {
    put_content(t, 'A', path, facts);
    return;
  }
  if (differs(&t->facts, facts)) put_content(t, 'M', path, facts);
  forth(t);
}

void snapshot_changes(const struct frame *frame) {
  static struct walker w;
  static struct teller t;
  struct field field;
  if (root == NULL) {
    file_end(frame->call, EINVAL, "changes without a snapshot");
    return;
  }
  memset(&w, 0, sizeof w);
  memset(&t, 0, sizeof t);
  for (const unsigned char *at = frame->payload; next_field(&at, frame->end, &field);)
    if (field.name == 'r') t.renews = 1;
  t.keeper.tree = &t.now;
  t.call = frame->call, t.left = before.count;
  next_old(&t);
  w.most = before.most, w.take = tell, w.to = &t;
  walk(&w, AT_FDCWD, root, 0);
  /* What lies behind a bound has not been looked for. */
  if (!(w.incomplete && is_full(&w)))
    for (; t.left > 0; forth(&t)) put_change(&t, 'D', t.facts.mode, &t.old);
  if (buffer_used(&t.out) > 0) link_send(REP_DATA, frame->call, buffer_at(&t.out), buffer_used(&t.out));
  buffer_free(&t.out);
  if (t.renews) {
    buffer_free(&before.entries);
    t.now.most = before.most, t.now.incomplete = before.incomplete || w.incomplete;
    before = t.now;
    outlast(&t.latest);
  }
  end(frame->call, before.incomplete || w.incomplete, t.bytes);
}
