import { maskSecrets } from "../../core/secrets.ts";

export interface FirstDifference {
  /** From 1. */
  readonly line: number;
  /** Undefined where that one had come to its end. */
  readonly then: string | undefined;
  readonly now: string | undefined;
}

/** Where two results first differ, but for how long they took and advice that is given once. */
export function firstDifference(then: string, now: string): FirstDifference | undefined {
  const [a, b] = [comparable(then), comparable(now)];
  const longer = a.length > b.length ? a : b;
  const at = longer.findIndex((_, line) => a[line] !== b[line]);
  return at === -1 ? undefined : { line: at + 1, then: a[at], now: b[at] };
}

/** The ends that the shell tool writes below an output. */
const TIMED = /^\[(exit \d+, |timed out after |cancelled after )[^,:\]]*/;

const comparable = (text: string): readonly string[] =>
  maskSecrets(text)
    .split("\n")
    .filter((line) => !line.startsWith("[advice: "))
    .map((line) => line.replace(TIMED, "[$1…"));
