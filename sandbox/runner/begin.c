/* How a command begins: its words, environment and limits out of a request. */
#define _GNU_SOURCE
#include "call.h"
#include "guard.h"
#include "protocol.h"
#include "spawn.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The runner's own environment, which is the container's, with the call's values over it. */
static char **environment(char **given, int count) {
  int base = 0, kept = 0;
  while (environ[base] != NULL) base++;
  char **env = calloc((size_t)(base + count + 1), sizeof *env);
  if (env == NULL) _exit(71);
  for (int i = 0; i < base; i++) {
    size_t name = strcspn(environ[i], "=") + 1;
    int replaced = 0;
    for (int j = 0; j < count; j++) replaced |= strncmp(environ[i], given[j], name) == 0;
    if (!replaced) env[kept++] = environ[i];
  }
  for (int j = 0; j < count; j++) env[kept++] = given[j];
  return env;
}

static void add_text(char ***list, int *count, char *text) {
  *list = realloc(*list, (size_t)(*count + 2) * sizeof **list);
  if (*list == NULL) _exit(71);
  (*list)[(*count)++] = text;
  (*list)[*count] = NULL;
}

static void free_texts(char **list, int count) {
  for (int i = 0; i < count; i++) free(list[i]);
  free(list);
}

void begin_command(struct call *c, const struct frame *f) {
  char **words = NULL, **given = NULL, *folder = NULL;
  int word_count = 0, given_count = 0;
  uint64_t head = 0, tail = 0, ms = 0, flags = 0;
  struct field field;
  for (const unsigned char *at = f->payload; next_field(&at, f->end, &field);) {
    if (field.name == 'a') add_text(&words, &word_count, field_text(&field));
    else if (field.name == 'e') add_text(&given, &given_count, field_text(&field));
    else if (field.name == 'd' && folder == NULL) folder = field_text(&field);
    else if (field.name == 't') ms = field_number(&field);
    else if (field.name == 'h') head = field_number(&field);
    else if (field.name == 'l') tail = field_number(&field);
    else if (field.name == 'f') flags = field_number(&field);
    else if (field.name == 'k' && c->kept == NULL) c->kept = field_text(&field);
    else if (field.name == 'w' || field.name == 'c') observer_take(&c->observer, &field);
    else if (field.name == 'n') c->kept_most = field_number(&field);
  }
  keep_start(&c->keep_out, head, tail);
  keep_start(&c->keep_err, head, tail);
  usage_now(&c->before);
  c->tty = (flags & EXEC_TTY) != 0;
  c->own = (flags & EXEC_OWN) != 0;
  if (ms > 0) c->deadline = now_ms() + (int64_t)ms;
  char **env = environment(given, given_count);
  struct command command = {words, env, folder == NULL ? "/" : folder, c->tty, (flags & EXEC_EXACT) != 0, c->observer != NULL};
  struct started s = {0, -1, -1, -1, -1, -1};
  if (c->observer != NULL) observer_begin(c->observer, words, c->started);
  if (word_count == 0) c->spawn_errno = EINVAL, c->spawn_where = START_PROGRAM;
  else if (guard_lost()) c->spawn_errno = ESTALE, c->spawn_where = START_PIPES;
  else c->spawn_errno = spawn(&command, (flags & EXEC_STDIN) != 0, &s, &c->spawn_where);
  if (c->spawn_errno == 0) {
    c->supervisor = s.supervisor;
    if (c->observer != NULL) c->observer->fd = s.eye, c->observer->supervisor = s.supervisor;
    c->in = s.in, c->out = s.out, c->err = s.err, c->status = s.status;
  } else c->ended = 1;
  free(env);
  free(folder);
  free_texts(words, word_count);
  free_texts(given, given_count);
}
