#define _GNU_SOURCE
#include "told.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif
/* Calls that are younger than the headers they may be compiled with; their numbers are the same everywhere. */
#ifndef SYS_io_uring_setup
#define SYS_io_uring_setup 425
#endif
#ifndef SYS_open_tree
#define SYS_open_tree 428
#endif
#ifndef SYS_move_mount
#define SYS_move_mount 429
#endif
#ifndef SYS_fsopen
#define SYS_fsopen 430
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
/* Numbers of the third way to call this kernel; no program of a distribution uses it. */
#define FOREIGN 0x40000000
#elif defined(__aarch64__)
#define NATIVE AUDIT_ARCH_AARCH64
#endif

#define PATH(name, act, dir, path, flags) {SYS_##name, #name, TELL_ALWAYS, DO_PATH, act, dir, path, -1, -1, flags}
#define FD(name) {SYS_##name, #name, TELL_ALWAYS, DO_FD, ACT_MODE, 0, -1, -1, -1, -1}
#define TWO(name, act, dir, path, other_dir, other, flags) {SYS_##name, #name, TELL_ALWAYS, DO_TWO, act, dir, path, other_dir, other, flags}
#define OTHER(name, tell, doing, act) {SYS_##name, #name, tell, doing, act, -1, -1, -1, -1, -1}
#define CALL(name) OTHER(name, TELL_ALWAYS, DO_CALL, ACT_CALL)

/* What the box's own profile refuses is told to nobody; it stands here for engines that have none. */
static const struct told all[] = {
    {SYS_openat, "openat", TELL_OPEN, DO_OPEN, ACT_READ, 0, 1, -1, -1, 2},
    /* Its flags lie in memory: each one is looked at. */
    {SYS_openat2, "openat2", TELL_ALWAYS, DO_OPEN2, ACT_READ, 0, 1, -1, 2, -1},
    {SYS_execve, "execve", TELL_ALWAYS, DO_EXEC, ACT_RUN, -1, 0, -1, 1, -1},
    {SYS_execveat, "execveat", TELL_ALWAYS, DO_EXEC, ACT_RUN, 0, 1, -1, 2, 4},
    PATH(unlinkat, ACT_REMOVE, 0, 1, -1),
    PATH(mkdirat, ACT_MAKE, 0, 1, -1),
    PATH(mknodat, ACT_MAKE, 0, 1, -1),
    PATH(symlinkat, ACT_MAKE, 1, 2, -1),
    PATH(fchmodat, ACT_MODE, 0, 1, -1),
    PATH(fchmodat2, ACT_MODE, 0, 1, 3),
    PATH(fchownat, ACT_MODE, 0, 1, 4),
    PATH(utimensat, ACT_MODE, 0, 1, 3),
    PATH(truncate, ACT_WRITE, -1, 0, -1),
    PATH(setxattr, ACT_MODE, -1, 0, -1),
    PATH(lsetxattr, ACT_MODE, -1, 0, -1),
    PATH(removexattr, ACT_MODE, -1, 0, -1),
    PATH(lremovexattr, ACT_MODE, -1, 0, -1),
    FD(fchmod),
    FD(fchown),
    FD(fsetxattr),
    FD(fremovexattr),
    TWO(renameat, ACT_REMOVE, 0, 1, 2, 3, -1),
    TWO(renameat2, ACT_REMOVE, 0, 1, 2, 3, -1),
    TWO(linkat, 0, 0, 1, 2, 3, 4),
#if defined(__x86_64__)
    {SYS_open, "open", TELL_OPEN, DO_OPEN, ACT_READ, -1, 0, -1, -1, 1},
    {SYS_creat, "creat", TELL_ALWAYS, DO_CREAT, ACT_WRITE, -1, 0, -1, -1, -1},
    PATH(unlink, ACT_REMOVE, -1, 0, -1),
    PATH(rmdir, ACT_REMOVE, -1, 0, -1),
    PATH(mkdir, ACT_MAKE, -1, 0, -1),
    PATH(mknod, ACT_MAKE, -1, 0, -1),
    PATH(symlink, ACT_MAKE, -1, 1, -1),
    PATH(chmod, ACT_MODE, -1, 0, -1),
    PATH(chown, ACT_MODE, -1, 0, -1),
    PATH(lchown, ACT_MODE, -1, 0, -1),
    PATH(utime, ACT_MODE, -1, 0, -1),
    PATH(utimes, ACT_MODE, -1, 0, -1),
    PATH(futimesat, ACT_MODE, 0, 1, -1),
    TWO(rename, ACT_REMOVE, -1, 0, -1, 1, -1),
    TWO(link, 0, -1, 0, -1, 1, -1),
#endif
    OTHER(connect, TELL_ALWAYS, DO_CONNECT, ACT_CONNECT),
    OTHER(bind, TELL_ALWAYS, DO_BIND, ACT_LISTEN),
    OTHER(listen, TELL_ALWAYS, DO_LISTEN, ACT_LISTEN),
    OTHER(sendto, TELL_ADDRESS, DO_SEND, ACT_SEND),
    OTHER(sendmsg, TELL_MESSAGE, DO_MESSAGE, ACT_SEND),
    OTHER(sendmmsg, TELL_ALWAYS, DO_MESSAGES, ACT_SEND),
    OTHER(kill, TELL_ALWAYS, DO_SIGNAL, ACT_CALL),
    OTHER(tkill, TELL_ALWAYS, DO_SIGNAL, ACT_CALL),
    OTHER(tgkill, TELL_ALWAYS, DO_SIGNAL, ACT_CALL),
    OTHER(rt_sigqueueinfo, TELL_ALWAYS, DO_SIGNAL, ACT_CALL),
    OTHER(rt_tgsigqueueinfo, TELL_ALWAYS, DO_SIGNAL, ACT_CALL),
    OTHER(pidfd_send_signal, TELL_ALWAYS, DO_SIGNAL, ACT_CALL),
    OTHER(prctl, TELL_HIDING, DO_HIDE, ACT_CALL),
    CALL(ptrace), CALL(mount), CALL(umount2), CALL(unshare), CALL(setns), CALL(pivot_root), CALL(chroot), CALL(bpf),
    CALL(keyctl), CALL(add_key), CALL(request_key), CALL(perf_event_open), CALL(process_vm_readv),
    CALL(process_vm_writev), CALL(open_by_handle_at), CALL(init_module), CALL(finit_module), CALL(delete_module),
    CALL(kexec_load), CALL(reboot), CALL(swapon), CALL(swapoff), CALL(acct), CALL(sethostname), CALL(settimeofday),
    CALL(clock_settime), CALL(syslog), CALL(quotactl), CALL(fsopen), CALL(open_tree), CALL(move_mount),
    CALL(mount_setattr), CALL(pidfd_getfd), CALL(kexec_file_load),
    /* What is done through a ring is told to nobody. */
    CALL(io_uring_setup),
};

#define COUNT ((int)(sizeof all / sizeof *all))

const struct told *told_all(int *count) {
  *count = COUNT;
  return all;
}

const struct told *told_of(int nr) {
  for (int i = 0; i < COUNT; i++)
    if (all[i].nr == nr) return &all[i];
  return NULL;
}

#define LOW(argument) (offsetof(struct seccomp_data, args) + 8 * (argument))
#define HIGH(argument) (LOW(argument) + 4)
#define LOAD(offset) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(offset))
#define IS(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), yes, no)
#define HAS(bits, yes, no) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (uint32_t)(bits), yes, no)
#define LEAST(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (uint32_t)(value), yes, no)
#define GIVE(action) BPF_STMT(BPF_RET | BPF_K, action)
#define TELL GIVE(SECCOMP_RET_USER_NOTIF)
#define PASS GIVE(SECCOMP_RET_ALLOW)

/* Told when a file may be made, changed or read; a folder that is opened gives names alone, and O_PATH gives nothing. */
#define TMPFILE (O_TMPFILE & ~O_DIRECTORY)

struct program {
  struct sock_filter steps[320];
  int length;
};

static void add(struct program *p, const struct sock_filter *steps, int count) {
  for (int i = 0; i < count; i++) p->steps[p->length++] = steps[i];
}

#define ADD(p, ...)                                         \
  do {                                                      \
    const struct sock_filter steps[] = {__VA_ARGS__};       \
    add(p, steps, (int)(sizeof steps / sizeof *steps));     \
  } while (0)

/* The number is loaded; a call of another number goes on with the next one. */
static void add_call(struct program *p, const struct told *t, const uint32_t pass[2]) {
  uint32_t nr = (uint32_t)t->nr;
  switch (t->tell) {
  case TELL_ALWAYS: ADD(p, IS(nr, 0, 1), TELL); break;
  case TELL_OPEN:
    ADD(p, IS(nr, 0, 5), LOAD(LOW(t->flags)), HAS(O_CREAT | TMPFILE, 1, 0), HAS(O_DIRECTORY | O_PATH, 1, 0), TELL, PASS);
    break;
  case TELL_ADDRESS:
    ADD(p, IS(nr, 0, 9), LOAD(LOW(4)), IS(0, 0, 5), LOAD(HIGH(4)), IS(0, 0, 3));
    ADD(p, LOAD(LOW(2)), LEAST(QUESTION_LEAST, 0, 2), LEAST(QUESTION_MOST + 1, 1, 0), TELL, PASS);
    break;
  case TELL_MESSAGE: ADD(p, IS(nr, 0, 6), LOAD(LOW(3)), IS(pass[0], 0, 2), LOAD(LOW(4)), IS(pass[1], 1, 0), TELL, PASS); break;
  case TELL_HIDING: ADD(p, IS(nr, 0, 6), LOAD(LOW(0)), IS(PR_SET_DUMPABLE, 0, 3), LOAD(LOW(1)), IS(0, 0, 1), TELL, PASS); break;
  }
}

/* Older kernels tell of calls, and have no way to let them go on. */
static int can_go_on(void) {
  struct utsname system;
  int major = 0, minor = 0;
  if (uname(&system) < 0 || sscanf(system.release, "%d.%d", &major, &minor) != 2) return 0;
  return major > 5 || (major == 5 && minor >= 5);
}

int told_filter(const uint32_t pass[2]) {
  if (!can_go_on()) {
    errno = ENOSYS;
    return -1;
  }
  struct program p = {.length = 0};
  ADD(&p, LOAD(offsetof(struct seccomp_data, arch)), IS(NATIVE, 1, 0), GIVE(SECCOMP_RET_ERRNO | ENOSYS));
  ADD(&p, LOAD(offsetof(struct seccomp_data, nr)));
#ifdef FOREIGN
  ADD(&p, BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, FOREIGN, 0, 1), GIVE(SECCOMP_RET_ERRNO | ENOSYS));
#endif
  for (int i = 0; i < COUNT; i++) add_call(&p, &all[i], pass);
  ADD(&p, PASS);
  struct sock_fprog program = {(unsigned short)p.length, p.steps};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  /* A call that is being told is not taken back by a signal other than a deadly one: programs that are signalled all the time would never get on. */
  unsigned long flags = SECCOMP_FILTER_FLAG_NEW_LISTENER;
  long fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &program);
  if (fd < 0 && errno == EINVAL) fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
  return (int)fd;
}
