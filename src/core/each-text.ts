/** The same value with every text in it, however deep, as `change` gives it; the names of fields stay. */
export function eachText<T>(value: T, change: (text: string) => string): T {
  return changed(value, change) as T;
}

function changed(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === "string") return change(value);
  if (Array.isArray(value)) return value.map((inner) => changed(inner, change));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, changed(inner, change)]));
}
