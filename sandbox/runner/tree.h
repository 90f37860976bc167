/* Ending processes that do not want to end. */
#ifndef TREE_H
#define TREE_H
#include <sys/types.h>

/* Sends a signal to all that descend from `root`, except root itself; answers how many there were. */
int signal_below(pid_t root, int signal);
/* Kills what lost its supervisor and fell to the runner; `kept` are the supervisors and the bridge. */
int kill_strays(const pid_t *kept, int count);
/* Processes below this one, at most so many. */
int tree_below(pid_t root, pid_t *pids, int most);
#endif
