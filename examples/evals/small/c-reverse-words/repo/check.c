#include <assert.h>
#include <string.h>

void reverse_words(char *text);

static void gives(const char *from, const char *to) {
  char text[64];
  strcpy(text, from);
  reverse_words(text);
  assert(strcmp(text, to) == 0);
}

int main(void) {
  gives("one two three", "three two one");
  gives("alone", "alone");
  gives("", "");
  gives("a bc", "bc a");
  return 0;
}
