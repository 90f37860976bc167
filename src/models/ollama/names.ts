/**
 * One spelling per model: `qwen3` is `qwen3:latest` is `registry.ollama.ai/library/qwen3:latest`.
 * Case does not count, as it does not for Ollama.
 */
export function fullName(name: string): string {
  const short = name
    .trim()
    .toLowerCase()
    .replace(/^registry\.ollama\.ai\//, "")
    .replace(/^library\//, "");
  return /:[^/]*$/.test(short) ? short : `${short}:latest`;
}

/** A line for a shell that runs Ollama's own client or server against this address. */
export function ollamaLine(address: string, ...words: readonly string[]): string {
  const line = ["ollama", ...words.map(quoted)].join(" ");
  return address === "http://127.0.0.1:11434" ? line : `OLLAMA_HOST=${quoted(address)} ${line}`;
}

const quoted = (word: string): string =>
  /^[\w./:@%+=,-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
