/** The same value with every text of it, however deep, through `clean`. */
export function cleaned<T>(value: T, clean: (text: string) => string): T;
export function cleaned(value: unknown, clean: (text: string) => string): unknown {
  if (typeof value === "string") return clean(value);
  if (Array.isArray(value)) return value.map((inner) => cleaned<unknown>(inner, clean));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, cleaned<unknown>(inner, clean)]),
  );
}
