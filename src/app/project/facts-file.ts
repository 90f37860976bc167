import type { Settings } from "../../config/settings-schema.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { type FileDiff, hunksOf, lineCounts, splitLines } from "../../core/line-diff.ts";
import type { Session, SessionStore } from "../../core/session.ts";
import { checkpointsFor } from "../sessions/checkpoint-access.ts";
import type { Host } from "../host.ts";
import { judgedPath } from "./policy-context.ts";
import { newSession } from "../sessions/session-access.ts";

/** The file that describes a project: how it is shown before it is replaced, written, and restored. */

export const FACTS_FILE = "AGENTS.md";

/** With more changed lines, the whole file is shown as replaced. */
const MAX_CHANGED = 2000;
const AROUND = 3;

/** The difference between the existing file and its replacement. */
export async function factsDiff(before: string, after: string): Promise<FileDiff> {
  const { lineChanges } = await import("../../sessions/checkpoints/checkpoint-diff.ts");
  const sides = { before: splitLines(before), after: splitLines(after) };
  const changes = lineChanges(sides.before, sides.after, MAX_CHANGED);
  return {
    path: FACTS_FILE,
    change: "modified",
    was: null,
    before: side(before),
    after: side(after),
    lines: { ...lineCounts(changes), hunks: hunksOf(changes, sides, AROUND) },
  };
}

const side = (text: string) => ({ kind: "file" as const, mode: 0o644, size: Buffer.byteLength(text) });

interface FactsPlace {
  readonly host: Host;
  readonly settings: Settings;
  readonly workspace: string;
  readonly store: SessionStore;
  /** The session that the write belongs to; undefined if nothing has been said yet. */
  readonly session: Session | undefined;
  readonly warn: (text: string) => void;
}

/**
 * Writes the file as a model's call would be written: judged first, in a box over the workspace, with its states before
 * and after kept. Returns what to type to restore the previous file.
 */
export async function writeFacts(place: FactsPlace, text: string, signal: AbortSignal): Promise<string> {
  const { host, settings, workspace, store, warn } = place;
  await refuseUnlessAllowed(place);
  // A session with a layer keeps its changes there, but this write goes to the folder itself.
  const own = settings.isolation === "bind" ? place.session : undefined;
  const session = own ?? newSession(store, settings, { workspace, prompt: "/init" });
  const before = session.steps.all().at(-1)?.step ?? 0;
  const bound: Settings = { ...settings, isolation: "bind" };
  await using checkpoints = await checkpointsFor({
    host,
    workspace,
    session,
    store,
    settings: bound,
    resumed: own !== undefined,
    emit: (event) => void (event.type === "notice" && warn(event.text)),
  });
  await checkpoints.around({ call: "/init", turn: 0, lasting: false }, () => written(place, text, signal));
  return `harness undo ${session.id}${before === 0 ? "" : ` --to ${before}`}`;
}

async function refuseUnlessAllowed({ host, settings, workspace }: FactsPlace): Promise<void> {
  const { mode } = settings;
  const judged = await judgedPath(host, FACTS_FILE, { workspace, home: host.places.home, mode, op: "write" });
  if (judged.decision === "allow") return;
  const why = judged.rules[0]?.reason ?? "no rule allows it";
  throw new HarnessError(EXIT.refused, `${FACTS_FILE} is not written: ${why}`, "/mode workspace-write");
}

async function written(place: FactsPlace, text: string, signal: AbortSignal): Promise<void> {
  const { writingBox } = await import("../box-access.ts");
  await using box = await writingBox(place, signal);
  const told = await box.write(FACTS_FILE, new TextEncoder().encode(text));
  if (told.kind === "ok") return;
  const message = `${FACTS_FILE} is not written: ${told.reason}`;
  throw new HarnessError(EXIT.failed, message, `ls -l ${FACTS_FILE}`);
}
