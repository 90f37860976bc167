/*
 * In a box the git directories are read-only, so that no command can plant what the host would later run. `git add`
 * and `git commit` are still possible: this program asks the harness, which makes the commit in a second container
 * with hooks off. Everything else, and every box in which nobody listens, gets the image's own git.
 */
#define _GNU_SOURCE
#include "../runner/ask.h"
#include "../runner/buffer.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* The answer for a repository that is not protected: the real git can do it. */
#define NOT_PROTECTED 0xffff

static int real_git(char **words) {
  char own[4096], candidate[4096];
  ssize_t n = readlink("/proc/self/exe", own, sizeof own - 1);
  own[n < 0 ? 0 : n] = 0;
  const char *path = getenv("PATH");
  for (const char *at = path == NULL ? "/usr/bin:/bin" : path; *at != 0;) {
    size_t length = strcspn(at, ":");
    snprintf(candidate, sizeof candidate, "%.*s/git", (int)length, at);
    at += length + (at[length] == ':');
    char *real = realpath(candidate, NULL);
    int itself = real != NULL && strcmp(real, own) == 0;
    free(real);
    if (length > 0 && !itself && access(candidate, X_OK) == 0) execv(candidate, words);
  }
  fprintf(stderr, "git: not found in this image\n");
  return 127;
}

/* Options before the subcommand that say nothing of what is recorded; the harness takes every path literally. */
static int says_nothing(const char *word) {
  static const char *const words[] = {"--no-pager", "-P", "-p", "--paginate", "--no-optional-locks",
                                      "--literal-pathspecs", "--no-advice", "--no-lazy-fetch"};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
    if (strcmp(word, words[i]) == 0) return 1;
  return 0;
}

/* Whether both lead to the same place. */
static int same_place(const char *one, const char *other) {
  char a[PATH_MAX], b[PATH_MAX];
  return realpath(one, a) != NULL && realpath(other, b) != NULL && strcmp(a, b) == 0;
}

/* Whether these two, either of which may be NULL, name what git finds from this folder by itself. */
static int finds_itself(const char *git_dir, const char *work_tree) {
  char top[PATH_MAX], found[PATH_MAX + 8];
  if (git_dir == NULL && work_tree == NULL) return 1;
  if (getcwd(top, sizeof top) == NULL) return 0;
  /* Without a work tree the folder itself is one, where the git directory is named. */
  if (work_tree == NULL) work_tree = ".";
  for (;;) {
    snprintf(found, sizeof found, "%s/.git", top);
    if (access(found, F_OK) == 0) break;
    char *slash = strrchr(top, '/');
    if (slash == NULL || slash == top) return 0;
    *slash = 0;
  }
  return same_place(work_tree, top) && (git_dir == NULL || same_place(git_dir, found));
}

/* The value of an option that is written as `--name VALUE` or `--name=VALUE`; NULL for another option. */
static const char *value_of(const char *name, char ***word) {
  size_t length = strlen(name);
  if (strncmp(**word, name, length) != 0) return NULL;
  if ((**word)[length] == '=') return **word + length + 1;
  return (**word)[length] == 0 && (*word)[1] != NULL ? *++*word : NULL;
}

/* Options before the subcommand that can be passed on; any other makes it the real git's call. */
static char **subcommand(char **words, struct buffer *request) {
  char **word = words + 1;
  const char *git_dir = NULL, *work_tree = NULL, *value;
  for (; word[0] != NULL && word[0][0] == '-'; word++) {
    if (says_nothing(word[0])) continue;
    if ((value = value_of("--git-dir", &word)) != NULL) git_dir = value;
    else if ((value = value_of("--work-tree", &word)) != NULL) work_tree = value;
    else if (word[1] == NULL) return NULL;
    else if (strcmp(word[0], "-c") == 0) put_field_text(request, 'k', *++word);
    else if (strcmp(word[0], "-C") != 0 || chdir(*++word) < 0) return NULL;
  }
  if (word[0] == NULL || !finds_itself(git_dir, work_tree)) return NULL;
  return strcmp(word[0], "add") == 0 || strcmp(word[0], "commit") == 0 ? word : NULL;
}

static int connect_harness(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  strcpy(address.sun_path, ASK_SOCKET);
  if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

static int put_all(int fd, const void *data, size_t length) {
  for (const char *at = data; length > 0;) {
    ssize_t n = write(fd, at, length);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return 0;
    at += n;
    length -= (size_t)n;
  }
  return 1;
}

static int show_answer(int fd) {
  struct buffer answer = {0};
  struct field field;
  int code = 128;
  for (ssize_t n; (n = read(fd, buffer_room(&answer, 65536), 65536)) > 0;) answer.to += (size_t)n;
  if (buffer_used(&answer) == 0) fprintf(stderr, "git: the harness did not answer\n");
  const unsigned char *at = buffer_at(&answer), *end = at + buffer_used(&answer);
  while (next_field(&at, end, &field)) {
    if (field.name == 'o') put_all(1, field.data, field.length);
    else if (field.name == 'e') put_all(2, field.data, field.length);
    else if (field.name == 'c') code = (int)field_number(&field);
  }
  buffer_free(&answer);
  return code;
}

int main(int count, char **words) {
  (void)count;
  struct buffer request = {0}, framed = {0};
  char folder[4096];
  char start[4096];
  if (getcwd(start, sizeof start) == NULL) return real_git(words);
  char **asked = subcommand(words, &request);
  int fd = asked == NULL || getcwd(folder, sizeof folder) == NULL ? -1 : connect_harness();
  if (fd < 0) {
    /* The real git reads -C itself. */
    if (chdir(start) < 0) return 128;
    return real_git(words);
  }
  put_field_text(&request, 'd', folder);
  for (; *asked != NULL; asked++) put_field_text(&request, 'a', *asked);
  put_number(&framed, buffer_used(&request), 4);
  if (put_all(fd, buffer_at(&framed), 4) && put_all(fd, buffer_at(&request), buffer_used(&request)))
  {
    int code = show_answer(fd);
    if (code != NOT_PROTECTED) return code;
    return chdir(start) < 0 ? 128 : real_git(words);
  }
  fprintf(stderr, "git: the harness did not listen\n");
  return 128;
}
