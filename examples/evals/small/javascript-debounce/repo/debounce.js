/** Calls `call` once, `ms` after the last time it was asked, with the arguments of that last time. `cancel()` drops it. */
export function debounce(call, ms) {
  return call;
}
