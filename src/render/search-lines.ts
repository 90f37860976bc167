import { plural, formatDuration, formatSize } from "../core/wording.ts";
import { visible, visibleLine } from "../core/visible.ts";
import { fitToWidth, mark, widthOfStream } from "./tty/columns.ts";
import { type Output, styleText } from "./tty/output.ts";

interface Hit {
  readonly path: string;
  readonly start: number;
  readonly end: number;
  readonly symbol: string | null;
  readonly preview: string;
  readonly why: string;
}

/** The results of a search, best first: the place, why it was found, and its lines. */
export function hitLines(hits: readonly Hit[], stream: Output): string {
  const width = widthOfStream(stream);
  return hits
    .map((hit) => {
      const place = styleText("bold", `${visibleLine(hit.path)}:${hit.start}-${hit.end}`, { stream });
      const symbol = hit.symbol === null ? "" : ` ${visibleLine(hit.symbol)}`;
      const why =
        hit.why === ""
          ? ""
          : `${styleText("dim", fitToWidth(`  ${visibleLine(hit.why)}`, width), { stream })}\n`;
      const lines = visible(hit.preview)
        .split("\n")
        .map((line) => `${fitToWidth(`    ${line}`, width)}\n`);
      return `${place}${symbol}\n${why}${lines.join("")}`;
    })
    .join("\n");
}

interface Indexed {
  readonly files: number;
  readonly chunks: number;
  readonly skipped: Readonly<Record<string, number>>;
  readonly changed: number;
  readonly removed: number;
  readonly store: string;
  readonly vectors: {
    readonly embedded: number;
    readonly reason: string;
    readonly remedy: string;
    readonly next: string;
  };
  readonly seconds: number;
}

/** The contents of an index after an update. */
export function indexedLines(done: Indexed): string {
  const { files, chunks, changed, removed, store, vectors, seconds } = done;
  const what = `${files} files in ${chunks} chunks (${store} store), ${formatDuration(seconds * 1000)}`;
  const news = `${changed} read again, ${removed} removed`;
  return [what, news, skippedLine(done.skipped), vectorLine(chunks, vectors)]
    .filter((line) => line !== "")
    .join("\n");
}

function skippedLine(skipped: Readonly<Record<string, number>>): string {
  const parts = Object.entries(skipped).toSorted(([, a], [, b]) => b - a);
  return parts.length === 0 ? "" : `left out: ${parts.map(([why, count]) => `${count} ${why}`).join(", ")}`;
}

function vectorLine(chunks: number, { embedded, reason, remedy, next }: Indexed["vectors"]): string {
  if (chunks === 0) return "";
  const why =
    reason === "" ? "" : `: ${visibleLine(reason)}${remedy === "" ? "" : ` (next: ${visibleLine(remedy)})`}`;
  const lacking =
    next === ""
      ? ""
      : `\nchunks without one are found by their words only; ${visibleLine(next)} adds the rest`;
  return `${embedded} of ${chunks} chunks have vectors${why}${lacking}`;
}

export interface IndexStatus {
  readonly workspace: string;
  /** Null: there is no index yet. */
  readonly index: string | null;
  readonly folder: string | null;
  /** `embedded` or `qdrant`. */
  readonly store: string | null;
  readonly files: number;
  readonly chunks: number;
  /** Files that are left out, by why. */
  readonly skipped: Readonly<Record<string, number>>;
  /** The last update ran to its end. */
  readonly whole: boolean;
  /** `whole`, and nothing has changed since. */
  readonly fresh: boolean;
  /** When an update last ended, as an ISO time. */
  readonly updated: string | null;
  readonly vectors: {
    readonly model: string | null;
    readonly embedded: number;
    /** A model that gave no vector in time when the index was made. */
    readonly awaited: string | null;
    /** The measured benefit of vectors on the history of the repository; null if not measured. */
    readonly worth: {
      readonly weight: number;
      readonly questions: number;
      readonly words: number;
      readonly vectors: number;
    } | null;
    /** From 0 to 1; 1 if there is nothing to embed. */
    readonly share: number;
    /** The command that embeds the rest; empty if no chunk lacks a vector. */
    readonly next: string;
  };
}

/** The state of an index, and how far it can be trusted. */
export function statusLines(status: IndexStatus): string {
  const { workspace, index, folder, store, files, chunks, whole, fresh, updated, vectors } = status;
  if (index === null) return `no index of ${visibleLine(workspace)} yet: harness index`;
  const state = !whole
    ? "partial: the last update did not finish; harness index continues it"
    : fresh
      ? "fresh"
      : "files have changed since; the next search brings it up to date";
  const model = vectors.model === null ? "" : ` of ${visibleLine(vectors.model)}`;
  const share = chunks === 0 ? "" : ` (${Math.floor(vectors.share * 100)} %)`;
  return [
    `${visibleLine(workspace)}: ${state}`,
    `${files} files in ${chunks} chunks, ${vectors.embedded} with vectors${share}${model}`,
    lackingLine(vectors),
    worthLine(vectors),
    skippedLine(status.skipped),
    `${store ?? "no"} store, ${visibleLine(folder ?? "")}, updated ${updated ?? "never"}`,
  ]
    .filter((line) => line !== "")
    .join("\n");
}

/** The benefit of vectors in this workspace; empty if there are none. */
function worthLine({ model, embedded, worth }: IndexStatus["vectors"]): string {
  if (model === null || embedded === 0) return "";
  if (worth === null)
    return "how much vectors help here is unknown: the history says too little, or was not evaluated yet";
  const { weight, questions, words, vectors } = worth;
  const of = `${questions} commits as questions`;
  if (weight === 0)
    return `vectors are not used: they find no more here than words alone (${of}, MRR@10 ${words})`;
  return `vectors count with weight ${weight} beside words: MRR@10 ${vectors}, with words alone ${words} (${of})`;
}

/** Why chunks lack a vector and how to complete them; empty when none do. */
function lackingLine({ model, awaited, next }: IndexStatus["vectors"]): string {
  if (next === "") return "";
  const why =
    awaited !== null
      ? `${visibleLine(awaited)} gave no vector in time`
      : model === null
        ? "there was no model for vectors when it was indexed"
        : "not all vectors were computed";
  return `chunks without a vector are searched by words only: ${why}; ${visibleLine(next)} adds the rest`;
}

interface Pruned {
  readonly removed: readonly { readonly workspace: string }[];
  readonly layers: number;
  readonly damaged: number;
  readonly left: readonly { readonly workspace: string; readonly reason: string }[];
  readonly freedBytes: number;
}

/** What was removed, and what could not be. */
export function prunedLines({ removed, layers, damaged, left, freedBytes }: Pruned): string {
  return [
    ...removed.map(
      ({ workspace }) => `removed the index of ${visibleLine(workspace)}, which no longer exists`,
    ),
    ...(layers === 0 ? [] : [`removed the leftovers of ${plural(layers, "ended run")}`]),
    ...(damaged === 0 ? [] : [`removed ${plural(damaged, "damaged file")} that had been set aside`]),
    ...left.map(
      ({ workspace, reason }) =>
        `not removed: the index of ${visibleLine(workspace)}: ${visibleLine(reason)}`,
    ),
    `${formatSize(freedBytes)} freed`,
  ].join("\n");
}

type StepState = "ok" | "stand-in" | "fail";

export interface StepLine {
  readonly name: string;
  readonly state: StepState;
  readonly detail: string;
  readonly remedy: string;
  /** The detail in a few words, for the closing table. */
  readonly short: string;
}

const MARKS = {
  ok: ["green", "done"],
  "stand-in": ["yellow", "instead"],
  fail: ["red", "failed"],
} as const;

/** One finished step with its time on one line, and its remedy below if there is one. */
export function stepLine(step: StepLine, ms: number, stream: Output): string {
  const [colour, name] = MARKS[step.state];
  const time = styleText("dim", formatDuration(ms).padStart(9), { stream });
  const head = `  ${styleText(colour, mark(name, stream), { stream })} ${step.name.padEnd(9)} ${time}  ${visibleLine(step.detail)}\n`;
  return step.remedy === ""
    ? head
    : `${head}${" ".repeat(25)}${styleText("bold", "next:", { stream })} ${step.remedy}\n`;
}
