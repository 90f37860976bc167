unsigned long factorial(int n) {
  unsigned long product = 1;
  int i = 1;
  do {
    product *= i;
    i++;
  } while (i != n);
  return product;
}
