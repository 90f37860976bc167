import { visibleLine } from "../../core/visible.ts";
import { fitted, widthOfStream } from "../tty/columns.ts";
import { type Output, styleText } from "../tty/output.ts";

interface CallEnd {
  readonly kind: string;
  readonly exit_code: number | null;
}

interface ShownRerun {
  readonly command: string;
  readonly outcome: "same" | "differs" | "not run";
  readonly then: CallEnd | null;
  readonly now: CallEnd | null;
  readonly difference: {
    readonly line: number;
    readonly then: string | undefined;
    readonly now: string | undefined;
  } | null;
  readonly reason: string;
}

const COLOURS = { same: "green", differs: "red", "not run": "yellow" } as const;

/** A command that was run again, and how its result differs. */
export function rerunLines(rerun: ShownRerun, stream: Output): string {
  const { command, outcome, then, now, difference, reason } = rerun;
  const width = widthOfStream(stream);
  const lines = [
    `${styleText(COLOURS[outcome], outcome.padEnd(8), { stream })} ${fitted(command, width - 9)}`,
  ];
  if (reason !== "") lines.push(`    ${visibleLine(reason)}`);
  if (outcome === "differs" && endWords(then) !== endWords(now))
    lines.push(`    then ${endWords(then)}, now ${endWords(now)}`);
  if (difference !== null)
    lines.push(
      `    line ${difference.line} then: ${fitted(difference.then ?? "(no such line)", width - 24)}`,
      `    line ${difference.line} now:  ${fitted(difference.now ?? "(no such line)", width - 24)}`,
    );
  return `${lines.join("\n")}\n`;
}

interface ShownEnd {
  readonly request: number;
  readonly outcome: "same" | "differs";
  readonly then: { readonly status: string; readonly exit_code: number } | null;
  readonly now: { readonly status: string; readonly exit_code: number } | null;
  readonly reason: string;
}

/** How the end of a replayed request compares with its original. */
export function replayedEnd({ request, outcome, then, now, reason }: ShownEnd, stream: Output): string {
  const describe = (end: ShownEnd["then"]): string =>
    end === null ? "no end" : `${end.status} (${end.exit_code})`;
  const ends = outcome === "same" ? describe(now) : `then ${describe(then)}, now ${describe(now)}`;
  const why = reason === "" ? "" : `    ${visibleLine(reason)}\n`;
  return `${styleText(COLOURS[outcome], outcome.padEnd(8), { stream })} end of request ${request}: ${ends}\n${why}`;
}

const endWords = (ended: CallEnd | null): string =>
  ended === null ? "nothing" : `${ended.kind}${ended.exit_code === null ? "" : ` (exit ${ended.exit_code})`}`;

interface ShownManifest {
  readonly harness: string | null;
  readonly policy: string | null;
  readonly model: { readonly provider: string; readonly name: string; readonly digest: string | null };
  readonly parts: readonly { readonly name: string; readonly bytes: number; readonly sha256: string }[];
}

/** The facts about a bundle, shown before its session. */
export function bundleLines(manifest: ShownManifest, sha256: string, stream: Output): string {
  const { harness, policy, model, parts } = manifest;
  const by = model.digest === null ? "" : ` (${visibleLine(model.digest)})`;
  const lines = [
    styleText("bold", `bundle ${sha256}`, { stream }),
    `harness ${visibleLine(harness ?? "unknown")}, policy ${visibleLine(policy ?? "unknown")}, model ${visibleLine(model.provider)} ${visibleLine(model.name)}${by}`,
    ...parts.map(
      ({ name, bytes, sha256: hash }) =>
        `  ${visibleLine(name)}  ${bytes} bytes  ${visibleLine(hash.slice(0, 12))}  unchanged`,
    ),
  ];
  return `${lines.join("\n")}\n`;
}
