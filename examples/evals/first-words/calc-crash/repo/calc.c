#include <stdio.h>
#include <stdlib.h>

/* n! for n from 0 to 20. */
static unsigned long factorial(unsigned int n) {
  return n * factorial(n - 1);
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  printf("%lu\n", factorial((unsigned int)atoi(argv[1])));
  return 0;
}
