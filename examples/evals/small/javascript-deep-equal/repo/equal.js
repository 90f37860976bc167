export function equal(a, b) {
  if (typeof a !== "object" || typeof b !== "object") return a === b;
  return Object.keys(a).every((key) => equal(a[key], b[key]));
}
