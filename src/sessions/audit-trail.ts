import { open, readdir } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import type { Audit, AuditEntry } from "../core/session.ts";
import type { AgentEvent } from "../core/events.ts";
import { MODES, VERDICTS } from "../core/decision.ts";
import { errorCode, EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import { parsedJson } from "../core/raw-data.ts";
import { linesIn } from "../core/text/line-diff.ts";
import { sha256 } from "./audit-file.ts";

/** The lines of the audit: made from the events of a run, and read again for the commands that were judged. */

/** Facts about a run that no event contains: its settings with their origins, and the versions of the software. */
export interface RunAbout {
  readonly settings: Readonly<Record<string, { readonly value: unknown; readonly origin: string }>>;
  readonly versions: Readonly<Record<string, string>>;
}

type Of<T extends AgentEvent["type"]> = Extract<AgentEvent, { readonly type: T }>;

interface Call {
  readonly tool: string;
  readonly args: Of<"call.proposed">["args"];
  readonly decided: Of<"call.decided"> | undefined;
}

/** Turns the events of one run into lines of the audit; events that only display something produce none. */
export class AuditTrail {
  readonly #audit: Audit;
  readonly #about: RunAbout;
  readonly #calls = new Map<string, Call>();
  #place: Pick<Of<"run.started">, "mode" | "workspace"> | undefined;

  constructor(audit: Audit, about: RunAbout) {
    this.#audit = audit;
    this.#about = about;
  }

  take(event: AgentEvent): void {
    const { run, seq, agent } = event;
    const stamp = { run, seq, ...(agent === undefined ? {} : { agent }) };
    this.#audit.write(this.#entries(event).map((entry) => ({ ...entry, ...stamp })));
  }

  #entries(event: AgentEvent): readonly AuditEntry[] {
    switch (event.type) {
      case "run.started":
        return [this.#startEntry(event)];
      case "call.proposed":
        this.#calls.set(keyOf(event), { tool: event.tool, args: event.args, decided: undefined });
        return [];
      case "call.decided":
        return this.#decisionEntries(event);
      case "call.ended":
        return this.#endEntries(event);
      case "call.edited":
        return [{ ...withoutStamp(event), proposed: this.#calls.get(keyOf(event))?.args }];
      case "hook":
        return [this.#hookEntry(event)];
      case "box.ready":
      case "call.parked":
      case "approval":
      case "check.started":
      case "connection":
      case "canary":
      case "notice":
      case "plan":
      case "task":
      case "compaction":
      case "rolled_back":
      case "files.undone":
        return [withoutStamp(event)];
      case "check.ended": {
        const { text: answerText, ...own } = event;
        return [{ ...withoutStamp(own), text_sha256: sha256(answerText) }];
      }
      case "model.failed":
        return [{ ...withoutStamp(event), failure: event.kind }];
      case "run.finished":
        return [...sideEffects(event), withoutAnswer(event), { kind: "closed" }];
      case "intent":
      case "turn.started":
      case "text":
      case "thinking":
      case "model.waiting":
      case "model.finished":
      case "model.aside":
      case "model.small":
      case "call.missed":
      case "candidate.finished":
        return [];
    }
  }

  #startEntry(event: Of<"run.started">): AuditEntry {
    const { mode, workspace } = event;
    this.#place = { mode, workspace };
    return { ...withoutStamp(event), ...this.#about };
  }

  /** Each command gets a line that `policy replay` can judge again, with exactly the judged text. */
  #decisionEntries(event: Of<"call.decided">): readonly AuditEntry[] {
    const { call, decision, contained, rules, runs, by, judged } = event;
    const { tool, args } = this.#calls.get(keyOf(event)) ?? { tool: "", args: {} };
    this.#calls.set(keyOf(event), { tool, args, decided: event });
    const common = { call, tool, decision, contained, rules, runs, by, ...this.#place };
    const { commands = [], folder, ...touched } = judged ?? {};
    const where = folder === undefined ? {} : { folder };
    const lines: readonly AuditEntry[] =
      commands.length === 0
        ? [{ kind: "decision", ...common, ...touched }]
        : commands.map((command) => ({ kind: "decision", command, ...where, ...common, ...touched }));
    return runs ? [...lines, { kind: "call.started", call, tool }] : lines;
  }

  /** If a hook replaced the arguments, the line holds both; the line of the decision is about the new ones. */
  #hookEntry(event: Of<"hook">): AuditEntry {
    const { event: on, ...own } = event;
    const proposed = event.args === undefined ? undefined : this.#argsOf(event);
    return { ...withoutStamp(own), on, ...(proposed === undefined ? {} : { proposed }) };
  }

  #argsOf({ call, agent }: Of<"hook">): unknown {
    return call === undefined
      ? undefined
      : this.#calls.get(keyOf({ call, ...(agent === undefined ? {} : { agent }) }))?.args;
  }

  /** The session stores the text itself; the hash ties it to this line. */
  #endEntries(event: Of<"call.ended">): readonly AuditEntry[] {
    const { call, kind: how, cause, text, ms, exit_code = null } = event;
    const { tool = "", decided } = this.#calls.get(keyOf(event)) ?? {};
    this.#calls.delete(keyOf(event));
    const { writes = [], hosts = [] } = decided?.judged ?? {};
    const ended = { kind: "call.ended", call, tool, how, cause, exit_code, ms, text_sha256: sha256(text) };
    return [
      ended,
      ...(how === "ok" && writes.length > 0 ? [{ kind: "files.written", call, tool, paths: writes }] : []),
      ...(cause === "network" ? [{ kind: "connection.blocked", call, tool, hosts }] : []),
    ];
  }
}

const keyOf = ({ agent = "", call }: { readonly agent?: string; readonly call: string }): string =>
  JSON.stringify([agent, call]);

/** Without run, number and agent, which are added to every line. */
function withoutStamp(event: Pick<AgentEvent, "type" | "run" | "seq" | "agent">): AuditEntry {
  const { type: kind, run: _, seq: __, agent: ___, ...own } = event;
  return { ...own, kind };
}

/** Other changes to the workspace beside the calls, one line each. */
function sideEffects({
  quarantined = [],
  commits = [],
  staged = [],
}: Of<"run.finished">): readonly AuditEntry[] {
  return [
    ...quarantined.map((moved) => ({ kind: "quarantined", ...moved })),
    ...commits.map((commit) => ({ kind: "committed", ...commit })),
    ...(staged.length === 0 ? [] : [{ kind: "staged", paths: staged }]),
  ];
}

/** Without the answer, which the session stores. */
function withoutAnswer(event: Of<"run.finished">): AuditEntry {
  const { answer: _, ...own } = withoutStamp(event);
  return own;
}

const absolutePath = z.string().refine((value) => path.isAbsolute(value));

/**
 * A command that was judged in a session. Its line in the audit:
 * `{"kind":"decision","ts":ISO time,"session":ID,"command":text,"mode":…,"workspace":absolute,"folder"?:absolute,"decision":…}`;
 * other keys of the line are ignored. Without `session`, the session is the one named by the file.
 */
const judgementForm = z.object({
  kind: z.literal("decision"),
  ts: z.string().refine((value) => !Number.isNaN(Date.parse(value))),
  session: z.string().optional(),
  command: z.string(),
  mode: z.enum(MODES),
  workspace: absolutePath,
  /** The folder in which the command started; left out if it is the workspace. */
  folder: absolutePath.optional(),
  decision: z.enum(VERDICTS),
});

export type PastJudgement = z.infer<typeof judgementForm> & { readonly session: string };

/** What was left out while reading, and why. */
export interface Counts {
  sessions: number;
  /** Lines about something other than a judged command. */
  skipped: number;
  /** Lines that are not JSON. */
  unreadable: number;
  /** Files whose last line is incomplete: the session was killed or is still writing. */
  torn: number;
}

export const noCounts = (): Counts => ({ sessions: 0, skipped: 0, unreadable: 0, torn: 0 });

/** All judged commands of all sessions in the state folder, file by file. Updates `counts` along the way. */
export async function* pastJudgements(state: string, counts: Counts): AsyncGenerator<PastJudgement> {
  const folder = path.join(state, "audit");
  for (const name of await namesIn(folder)) {
    counts.sessions += 1;
    yield* judgementsIn(path.join(folder, name), counts);
  }
}

async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    const entries = await readdir(folder, { withFileTypes: true });
    return entries
      .filter((entry) => entry.isFile() && entry.name.endsWith(".jsonl"))
      .map(({ name }) => name)
      .toSorted();
  } catch (thrown) {
    if (errorCode(thrown) === "ENOENT") return [];
    throw unreadable(folder, thrown);
  }
}

const unreadable = (file: string, thrown: unknown): HarnessError =>
  new HarnessError(EXIT.usage, `${file}: cannot be read: ${reasonOf(thrown)}`, `ls -ld ${file}`, thrown);

async function* judgementsIn(file: string, counts: Counts): AsyncGenerator<PastJudgement> {
  await using handle = await open(file).catch((thrown: unknown) => {
    throw unreadable(file, thrown);
  });
  let broken = false;
  for await (const line of linesIn(handle.createReadStream())) {
    // Only the last line can be torn: if another line follows, this one is unreadable instead.
    if (broken) counts.unreadable += 1;
    const value = parsedJson(line);
    broken = value === undefined;
    if (value === undefined) continue;
    const judged = judgementFrom(value, path.basename(file, ".jsonl"));
    if (judged === undefined) counts.skipped += 1;
    else yield judged;
  }
  if (broken) counts.torn += 1;
}

function judgementFrom(value: unknown, file: string): PastJudgement | undefined {
  const { data } = judgementForm.safeParse(value);
  return data === undefined ? undefined : { ...data, session: data.session ?? file };
}
