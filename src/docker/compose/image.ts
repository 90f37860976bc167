import { createInterface } from "node:readline";
import type Docker from "dockerode";
import { reasonOf } from "../../core/errors.ts";
import { unlessMissing } from "./answer.ts";

export interface PullBounds {
  /** The pull is given up after this long without a step forward; a slow pull that moves may last. */
  readonly silenceMs: number;
  readonly signal: AbortSignal;
}

/** Sees to it that the image is here, pulling it if need be: undefined, or why it cannot be had. */
export async function lackOfImage(
  api: Docker,
  image: string,
  bounds: PullBounds,
): Promise<string | undefined> {
  if (await isHere(api, image)) return undefined;
  const silence = new AbortController();
  const watch = setTimeout(() => silence.abort(), bounds.silenceMs);
  try {
    const abortSignal = AbortSignal.any([bounds.signal, silence.signal]);
    const answer = await api.pull(image, { abortSignal });
    const refusal = await followPull(answer, () => watch.refresh());
    if (refusal !== undefined) return refusal;
    return (await isHere(api, image)) ? undefined : "the pull ended without the image";
  } catch (thrown) {
    bounds.signal.throwIfAborted();
    if (silence.signal.aborted) return `the pull made no progress for ${bounds.silenceMs / 1000} s`;
    return reasonOf(thrown);
  } finally {
    clearTimeout(watch);
  }
}

async function isHere(api: Docker, image: string): Promise<boolean> {
  return (await unlessMissing(api.getImage(image).inspect())) !== undefined;
}

/** Reads the engine's progress lines to their end; an error in them is the answer. */
async function followPull(answer: NodeJS.ReadableStream, moved: () => void): Promise<string | undefined> {
  let refusal: string | undefined;
  for await (const line of createInterface({ input: answer })) {
    const { status, error } = progressOf(line);
    if (error !== undefined) refusal = error;
    // Waiting for another try is no step forward: an engine may retry for ever.
    else if (!/^(?:Retrying|Waiting)\b/.test(status)) moved();
  }
  return refusal;
}

function progressOf(line: string): { readonly status: string; readonly error: string | undefined } {
  try {
    const event = JSON.parse(line) as { status?: unknown; error?: unknown } | null;
    return {
      status: typeof event?.status === "string" ? event.status : "",
      error: typeof event?.error === "string" ? event.error : undefined,
    };
  } catch {
    return { status: "", error: undefined };
  }
}
