const OF_THE_PROGRAM: ReadonlySet<string> = new Set(["--help", "-h", "--version"]);

/** The command that words without one mean: the chat, with these options. */
export function routed(words: readonly string[]): readonly string[] {
  const [first] = words;
  if (first === undefined) return ["chat"];
  if (!first.startsWith("-") || first === "--" || OF_THE_PROGRAM.has(first)) return words;
  return ["chat", ...words];
}
