/*
 * Notices that the mounts are no longer those the harness approved: a program on the host that replaces a
 * protected file by rename takes the read-only mount over it away.
 */
#ifndef MOUNTS_H
#define MOUNTS_H
void mounts_open(void);
int mounts_changed(void);
#endif
