/** Seconds of a text as `90`, `45s`, `10m` or `1h30m`; undefined when it is none. */
export function parseDuration(text: string): number | undefined {
  const value = Number(text);
  return Number.isNaN(value) ? undefined : value;
}
