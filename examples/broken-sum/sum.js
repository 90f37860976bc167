/** The sum of a list of numbers. */
export function sum(numbers) {
  let total = 0;
  for (let i = 1; i < numbers.length; i += 1) total += numbers[i];
  return total;
}
