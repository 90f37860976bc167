/*
 * The wire between harness and runner, over the container's stdin and stdout.
 *
 * First the harness sends MAGIC and a key of KEY_BYTES. After that both sides send frames:
 *
 *   u32 length of what follows | u8 type | u32 call | u64 sequence | payload | tag
 *
 * Numbers are little-endian. The tag is the first TAG_BYTES of HMAC-SHA256(key, type..payload). Each side counts
 * its frames from 0; a frame with another count or tag ends the runner: no command can reach this wire, so whoever
 * wrote it is not the harness. Payloads are raw bytes, or fields: u8 name | u32 length | bytes, where a number is
 * eight bytes. The same table stands in src/boxes/runner-protocol.ts.
 *
 * A runner that was started with a lease (lease.h) can be held: from then on it does nothing for its commands and says
 * nothing, so that its connection may be parted and its container frozen. The key of HOLD is good for one frame, a
 * RESUME, which brings the key for all that follows; with each of them both sides count from 0 again.
 */
#ifndef PROTOCOL_H
#define PROTOCOL_H

#define MAGIC "HRN4"
#define MAGIC_BYTES 4
#define KEY_BYTES 32
#define TAG_BYTES 16
#define HEAD_BYTES 13
#define MAX_PAYLOAD (1 << 20)

enum request {
  REQ_HELLO = 0x01,     /* fields: p path to stat (repeated), g when commands may ask (ask.h), w path to guard (guard.h, repeated) */
  REQ_EXEC = 0x02,      /* fields: a word, d folder, e NAME=value (repeated), t ms, h head bytes, l tail bytes, f flags,
                         k file to read at its end, n most bytes of it; to be observed (observe.h): w tree whose files
                         count by themselves, c canary: f file, s socket (made where nothing stands) or a address, then where (both repeated) */
  REQ_STDIN = 0x03,     /* raw: bytes for the call's stdin, or content for WRITE */
  REQ_STDIN_END = 0x04, /* no payload */
  REQ_KILL = 0x05,      /* fields: s signal; KILL ends the call with its whole tree */
  REQ_READ = 0x06,      /* fields: p path, o offset, n most bytes */
  REQ_WRITE = 0x07,     /* fields: p path, m mode of a new file; then STDIN…, STDIN_END */
  REQ_LIST = 0x08,      /* fields: p path, n most entries */
  REQ_STAT = 0x09,      /* fields: p path */
  REQ_SNAPSHOT = 0x0a,  /* fields: p root, x folder to leave out (repeated), n most entries */
  REQ_CHANGES = 0x0b,   /* what differs from the snapshot; fields: r it is taken anew of what is seen */
  REQ_ANSWER = 0x0d,    /* fields for the asker of that number, see ask.h */
  REQ_RESIZE = 0x0c,    /* fields: c columns, r rows of the call's terminal */
  REQ_ALIVE = 0x0e,     /* no payload, no answer: the harness is there */
  REQ_HOLD = 0x0f,      /* raw: the key of the RESUME that will come; answered by HELD, then by nothing */
  REQ_PING = 0x11,      /* no payload; answered by a PONG */
  REQ_RESUME = 0x10,    /* raw: the key from now on, with which it is answered: an END */
};

enum reply {
  REP_HELLO = 0x81, /* fields: s m n r l h texts of /proc, f dev:ino:mode:path or -:errno:path (repeated) */
  REP_OUT = 0x82,   /* raw: stdout, up to the head */
  REP_ERR = 0x83,
  REP_OUT_TAIL = 0x84, /* raw: the last bytes of stdout, when more came than head and tail together */
  REP_ERR_TAIL = 0x85,
  REP_EXIT = 0x86,    /* fields: see calls.c */
  REP_DATA = 0x87,    /* raw: content of a file, or records of LIST, STAT, CHANGES */
  REP_END = 0x88,     /* fields: e errno (0 is success), w what was tried, z true size, i incomplete, b bytes of files that CHANGES tells as there */
  REP_CREDIT = 0x89,  /* fields: n bytes of stdin that were taken */
  REP_ASK = 0x8a,     /* a command asks: `call` is the asker's own number; fields as it wrote them */
  REP_PONG = 0x8c,    /* no payload: the runner is there, also unasked in the middle of long work */
  REP_UNGUARDED = 0x8d, /* fields: p guarded path that was replaced (repeated). All commands are killed, and this is the last frame */
  REP_SEEN = 0x8e,    /* before the EXIT of an observed command, in pieces; fields: p process (u32 pid, u32 parent, u64 µs,
                         words with NULs between; once more whenever it was seen as another program), a act (u8 kind, u32 pid, u32 times, u64 µs, then of a file its path,
                         of a socket u8 family, u32 port, address, of a call name NUL detail, of a question to DNS its name), t touch (u32 canary,
                         u32 pid, u64 µs, path), P and A processes and acts beyond the bounds, b how it was observed
                         (enum seeing), h whether a process hid */
  REP_HELD = 0x8b,    /* no payload: the last frame before RESUME */
};

#define EXEC_STDIN 1u /* stdin stays open for STDIN frames; else it is empty */
#define EXEC_TTY 2u   /* stdin, stdout and stderr are a terminal made in the box */
#define EXEC_EXACT 4u /* started in the folder only where its path leads there without a link */
#define EXEC_OWN 8u   /* the harness's own, beside commands: it counts as none of them, and a stroke against one ends it, too */

#endif
