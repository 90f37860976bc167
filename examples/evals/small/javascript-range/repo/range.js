export function range(from, to) {
  const numbers = [];
  for (let n = from; n < to; n++) numbers.push(n);
  return numbers;
}
