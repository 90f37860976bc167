#include <assert.h>
#include <stddef.h>

long find(const int *values, size_t count, int wanted);

int main(void) {
  const int values[] = {1, 3, 5, 7, 9, 11};
  for (size_t count = 0; count <= 6; count++)
    for (int wanted = 0; wanted <= 12; wanted++) {
      long at = -1;
      for (size_t i = 0; i < count; i++) if (values[i] == wanted) at = (long)i;
      assert(find(values, count, wanted) == at);
    }
  return 0;
}
