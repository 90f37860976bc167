/* What a tree looked like, and what is different now: by inode, size, mode and change time, which no command can set. */
#ifndef SNAPSHOT_H
#define SNAPSHOT_H
#include "link.h"
void snapshot_take(const struct frame *frame);
void snapshot_changes(const struct frame *frame);
#endif
