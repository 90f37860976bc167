#define _GNU_SOURCE
#include "ask.h"
#include "buffer.h"
#include "protocol.h"
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MOST_ASKERS (ASK_FDS - 1)
#define MOST_REQUEST (128u * 1024)

/* u32 length and fields come in, fields go out; the end of the answer is the end of the connection. */
struct asker {
  int fd, asked;
  uint32_t id;
  struct buffer in;
};

static int listening = -1;
static uint32_t next_id;
static struct asker askers[MOST_ASKERS];

void ask_open(void) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (listening >= 0) return;
  for (int i = 0; i < MOST_ASKERS; i++) askers[i].fd = -1;
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  strcpy(address.sun_path, ASK_SOCKET);
  if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && listen(fd, MOST_ASKERS) == 0)
    listening = fd;
  else if (fd >= 0) close(fd);
}

static void leave(struct asker *a) {
  close(a->fd);
  buffer_free(&a->in);
  a->fd = -1;
}

static void welcome(void) {
  for (int i = 0; i < MOST_ASKERS; i++) {
    if (askers[i].fd >= 0) continue;
    int fd = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return;
    memset(&askers[i], 0, sizeof askers[i]);
    askers[i].fd = fd;
    askers[i].id = ++next_id;
  }
}

/* Behind the request nothing counts but that the asker is still there: what it goes on to say is kept nowhere. */
static void hear(struct asker *a) {
  static unsigned char ignored[65536];
  unsigned char *into = a->asked ? ignored : buffer_room(&a->in, sizeof ignored);
  ssize_t n = read(a->fd, into, sizeof ignored);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) {
    leave(a);
    return;
  }
  if (a->asked) return;
  a->in.to += (size_t)n;
  if (buffer_used(&a->in) < 4) return;
  size_t length = get_number(buffer_at(&a->in), 4);
  if (length > MOST_REQUEST) leave(a);
  else if (buffer_used(&a->in) >= 4 + length) {
    a->asked = 1;
    link_send(REP_ASK, a->id, buffer_at(&a->in) + 4, length);
  }
}

/* What does not fit into the socket is cut: an asker that does not read waits for nobody. */
void ask_answer(const struct frame *f) {
  for (int i = 0; i < MOST_ASKERS; i++) {
    struct asker *a = &askers[i];
    if (listening < 0 || a->fd < 0 || a->id != f->call) continue;
    ssize_t n = send(a->fd, f->payload, (size_t)(f->end - f->payload), MSG_NOSIGNAL);
    (void)n;
    leave(a);
  }
}

int ask_watch(struct pollfd *fds) {
  int count = 0;
  if (listening < 0) return 0;
  fds[count++] = (struct pollfd){listening, POLLIN, 0};
  for (int i = 0; i < MOST_ASKERS; i++)
    if (askers[i].fd >= 0) fds[count++] = (struct pollfd){askers[i].fd, POLLIN, 0};
  return count;
}

void ask_step(void) {
  if (listening < 0) return;
  for (int i = 0; i < MOST_ASKERS; i++)
    if (askers[i].fd >= 0) hear(&askers[i]);
  welcome();
}
