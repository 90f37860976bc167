import type { Readable } from "node:stream";
import { stripVTControlCharacters } from "node:util";
import type Docker from "dockerode";
import { reasonOf } from "../core/errors.ts";
import { isMissing } from "./engine.ts";

/** One line of the engine's progress for a pull or a build. */
export interface ImageProgress {
  readonly text: string;
  readonly error?: string;
}

interface Following {
  readonly signal: AbortSignal;
  readonly onLine: (line: ImageProgress) => void;
}

interface Bounded extends Following {
  readonly silenceMs: number;
}

export async function isImageThere(api: Docker, image: string): Promise<boolean> {
  try {
    await api.getImage(image).inspect();
    return true;
  } catch (thrown) {
    if (isMissing(thrown)) return false;
    throw thrown;
  }
}

/**
 * Makes sure that the image is here, and pulls it if necessary. Returns undefined, or why there is no image. A pull
 * without progress for `silenceMs` is given up: an engine without a route to its registry can hang for minutes.
 */
export async function lackOfImage(api: Docker, image: string, bounds: Bounded): Promise<string | undefined> {
  if (await isImageThere(api, image)) return undefined;
  const silence = new AbortController();
  const timer = setTimeout(() => silence.abort(), bounds.silenceMs);
  try {
    const abortSignal = AbortSignal.any([bounds.signal, silence.signal]);
    const onLine = (line: ImageProgress): void => {
      // Waiting for another try is no progress: an engine may retry for ever.
      if (!/^(?:\w+ )?(?:Retrying|Waiting)\b/.test(line.text)) timer.refresh();
      bounds.onLine(line);
    };
    const answer = (await api.pull(image, { abortSignal })) as Readable;
    for await (const line of progressOf(answer, abortSignal)) onLine(line);
    return (await isImageThere(api, image)) ? undefined : "the pull ended without the image";
  } catch (thrown) {
    bounds.signal.throwIfAborted();
    if (silence.signal.aborted) return `the pull made no progress for ${bounds.silenceMs / 1000} s`;
    return reasonOf(thrown);
  } finally {
    clearTimeout(timer);
  }
}

/** Reads the engine's JSON lines to the end. A stream that sends nothing for `silenceMs` is given up. */
export async function followStream(stream: Readable, options: Bounded): Promise<void> {
  const silent = (): Error => new Error(`no progress for ${options.silenceMs / 1000} s`);
  const timer = setTimeout(() => stream.destroy(silent()), options.silenceMs);
  try {
    for await (const line of progressOf(stream, options.signal, () => timer.refresh())) options.onLine(line);
  } finally {
    clearTimeout(timer);
  }
}

/** The engine's progress until its stream ends; an error in the stream, or the signal, is thrown. */
export async function* progressOf(
  stream: Readable,
  signal: AbortSignal,
  onAny: () => void = () => undefined,
): AsyncGenerator<ImageProgress, void> {
  const abort = (): void => void stream.destroy(new Error("interrupted"));
  signal.addEventListener("abort", abort, { once: true });
  try {
    signal.throwIfAborted();
    for await (const line of linesOf(stream)) {
      onAny();
      const progress = readLine(line);
      if (progress?.error !== undefined) throw new Error(progress.error);
      if (progress !== undefined) yield progress;
      signal.throwIfAborted();
    }
  } finally {
    signal.removeEventListener("abort", abort);
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

function readLine(line: string): ImageProgress | undefined {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return line.trim() === "" ? undefined : { text: line };
  }
  if (typeof value !== "object" || value === null) return undefined;
  const { stream, status, id, error } = value as Record<string, unknown>;
  const message = [id, stream ?? status].filter((part) => typeof part === "string").join(" ");
  // The builder colours the error output of a step.
  const text = stripVTControlCharacters(message).trim();
  return { text, ...(typeof error === "string" ? { error } : {}) };
}
