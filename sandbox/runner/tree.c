#include "tree.h"
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct process {
  pid_t pid, parent;
  int marked;
};

/* Zombies count as gone: they are only waiting to be reaped. */
static int read_process(const char *name, struct process *p) {
  char path[64], text[512];
  snprintf(path, sizeof path, "/proc/%.20s/stat", name);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  if (n <= 0) return 0;
  text[n] = 0;
  char *end = strrchr(text, ')');
  char state;
  int parent;
  if (end == NULL || sscanf(end + 1, " %c %d", &state, &parent) != 2 || state == 'Z' || state == 'X') return 0;
  p->pid = atoi(name);
  p->parent = parent;
  p->marked = 0;
  return 1;
}

static struct process *list(int *count) {
  struct process *all = NULL;
  int room = 0;
  *count = 0;
  DIR *proc = opendir("/proc");
  if (proc == NULL) return NULL;
  for (struct dirent *e; (e = readdir(proc)) != NULL;) {
    if (!isdigit((unsigned char)e->d_name[0])) continue;
    if (*count == room) {
      room = room == 0 ? 64 : room * 2;
      struct process *more = realloc(all, (size_t)room * sizeof *all);
      if (more == NULL) break;
      all = more;
    }
    if (read_process(e->d_name, &all[*count])) ++*count;
  }
  closedir(proc);
  return all;
}

static int mark_below(struct process *all, int count, pid_t root) {
  int marked = 0;
  for (int found = 1; found;) {
    found = 0;
    for (int i = 0; i < count; i++) {
      if (all[i].marked) continue;
      int below = all[i].parent == root;
      for (int j = 0; j < count && !below; j++) below = all[j].marked && all[j].pid == all[i].parent;
      if (below) all[i].marked = found = 1, marked++;
    }
  }
  return marked;
}

int signal_below(pid_t root, int signal) {
  int count;
  struct process *all = list(&count);
  int marked = mark_below(all, count, root);
  /* Stopped first, so that a bomb does not fork behind our back while the rest is ended. */
  for (int pass = signal == SIGKILL ? 0 : 1; pass < 2; pass++)
    for (int i = 0; i < count; i++)
      if (all[i].marked) kill(all[i].pid, pass == 0 ? SIGSTOP : signal);
  free(all);
  return marked;
}

int kill_strays(const pid_t *kept, int count) {
  int processes, killed = 0;
  struct process *all = list(&processes);
  for (int i = 0; i < processes; i++) {
    int ours = all[i].parent != 1;
    for (int j = 0; j < count && !ours; j++) ours = all[i].pid == kept[j];
    if (ours) continue;
    kill(all[i].pid, SIGKILL);
    killed++;
  }
  free(all);
  return killed;
}

int tree_below(pid_t root, pid_t *pids, int most) {
  int processes, count = 0;
  struct process *all = list(&processes);
  mark_below(all, processes, root);
  for (int i = 0; i < processes && count < most; i++)
    if (all[i].marked) pids[count++] = all[i].pid;
  free(all);
  return count;
}
