import type { Readable } from "node:stream";
import { stripVTControlCharacters } from "node:util";

/** One line of the engine's progress for a pull or a build. */
export interface Progress {
  readonly text: string;
  readonly error?: string;
}

/**
 * Reads the engine's JSON lines to the end. A stream that says nothing for `silenceMs` is given up:
 * an engine without a route to its registry can hang for minutes.
 */
export async function followStream(
  stream: Readable,
  options: {
    readonly silenceMs: number;
    readonly signal: AbortSignal;
    readonly onLine: (line: Progress) => void;
  },
): Promise<void> {
  const silent = (): Error => new Error(`no progress for ${options.silenceMs / 1000} s`);
  let timer = setTimeout(() => stream.destroy(silent()), options.silenceMs);
  const abort = (): void => void stream.destroy(new Error("interrupted"));
  options.signal.addEventListener("abort", abort, { once: true });
  try {
    options.signal.throwIfAborted();
    for await (const line of linesOf(stream)) {
      clearTimeout(timer);
      timer = setTimeout(() => stream.destroy(silent()), options.silenceMs);
      const progress = readLine(line);
      if (progress?.error !== undefined) throw new Error(progress.error);
      if (progress !== undefined) options.onLine(progress);
      options.signal.throwIfAborted();
    }
  } finally {
    clearTimeout(timer);
    options.signal.removeEventListener("abort", abort);
    stream.destroy();
  }
}

async function* linesOf(stream: Readable): AsyncGenerator<string> {
  let rest = "";
  const decoder = new TextDecoder();
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
  if (rest !== "") yield rest;
}

function readLine(line: string): Progress | undefined {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return line.trim() === "" ? undefined : { text: line };
  }
  if (typeof value !== "object" || value === null) return undefined;
  const { stream, status, id, error } = value as Record<string, unknown>;
  const said = [id, stream ?? status].filter((part) => typeof part === "string").join(" ");
  // The builder colours what a step wrote to its error output.
  const text = stripVTControlCharacters(said).trim();
  return { text, ...(typeof error === "string" ? { error } : {}) };
}
