#include <assert.h>
#include <stddef.h>
#include <string.h>

void to_hex(const unsigned char *bytes, size_t count, char *text);

int main(void) {
  char text[16];
  to_hex((const unsigned char[]){0x00, 0x0f, 0xa0, 0xff}, 4, text);
  assert(strcmp(text, "000fa0ff") == 0);
  to_hex((const unsigned char[]){0}, 0, text);
  assert(strcmp(text, "") == 0);
  return 0;
}
