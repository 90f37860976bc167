/* What an observer writes down, and what it makes of it: who began whom, what is too dull to tell, what is a canary. */
#ifndef WITNESS_H
#define WITNESS_H
#include "observe.h"
#include "peek.h"

#define WORDS_BYTES 512
#define WORD_BYTES 256
#define PATH_BYTES 1024

/* Adds one to words with NULs between them, within bounds (`into` has 16 more); what was cut ends in an ellipsis. */
size_t witness_word(char *into, size_t have, const char *word);
/* 0 for the command itself. */
pid_t witness_parent(const struct observer *o, const struct kin *k);
/* With those it comes from, so that a report can tell the way there. `needed`: beyond the bounds, too. */
void witness_process(struct observer *o, pid_t pid, int needed);
/* A process that has become another program since it was seen is written down again. */
void witness_again(struct observer *o, pid_t pid);
void note_path(struct observer *o, pid_t pid, char act, const char *path);
void note_call(struct observer *o, pid_t pid, const char *name, const char *detail);
/* `family` i, u or o; `port` -1 for none. */
void note_socket(struct observer *o, pid_t pid, char act, char family, int port, const char *address);
/* A name that DNS is asked for. */
void note_name(struct observer *o, pid_t pid, const char *name, size_t length);
void witness_touch(struct observer *o, int canary, pid_t pid, const char *path);
/* Whether this place is a canary's, by its name or by what stands there; then it is a touch. */
int witness_touches(struct observer *o, pid_t pid, const struct place *at, int nofollow);
uint64_t witness_age(const struct observer *o);
#endif
