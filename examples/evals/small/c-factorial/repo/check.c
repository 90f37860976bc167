#include <assert.h>

unsigned long factorial(int n);

int main(void) {
  assert(factorial(0) == 1);
  assert(factorial(1) == 1);
  assert(factorial(5) == 120);
  assert(factorial(12) == 479001600UL);
  assert(factorial(-3) == 0);
  return 0;
}
