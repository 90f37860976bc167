#include <stddef.h>

/* The index of `wanted` in the sorted array, or -1. */
long find(const int *values, size_t count, int wanted) {
  size_t low = 0, high = count;
  while (low < high - 1) {
    size_t middle = (low + high) / 2;
    if (values[middle] <= wanted) low = middle + 1;
    else high = middle;
  }
  return values[low] == wanted ? (long)low : -1;
}
