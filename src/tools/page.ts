import type { Box } from "../core/ports.ts";
import type { Desk } from "./desk.ts";

export interface Place {
  readonly desk: Desk;
  readonly box: Box;
  readonly signal: AbortSignal;
  /** Absolute. */
  readonly path: string;
}

export interface Lines {
  /** From 1. */
  readonly first: number;
  readonly most: number;
}

interface Paged {
  readonly first: number;
  readonly shown: number;
  readonly total: number;
  readonly notes: readonly string[];
}

export function pageNote({ first, shown, total, notes }: Paged): string {
  const last = first + shown - 1;
  const which =
    shown === total ? (total === 1 ? "1 line" : `all ${total} lines`) : `lines ${first}-${last} of ${total}`;
  const next = last < total ? [`go on with offset ${last + 1}`] : [];
  return `[${[which, ...next, ...notes].join("; ")}]`;
}
