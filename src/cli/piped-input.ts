/** What is piped in, until it is disposed of: then an open pipe keeps nothing waiting. */
export function pipedInput(): Disposable & { readonly input?: AsyncIterable<Uint8Array> } {
  // A person's keyboard is not handed to a command that has no terminal.
  if (process.stdin.isTTY) return { [Symbol.dispose]: () => undefined };
  const input = process.stdin as AsyncIterable<Uint8Array>;
  return { input, [Symbol.dispose]: () => void process.stdin.destroy() };
}
