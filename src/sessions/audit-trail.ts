import type { Audit, AuditEntry } from "../core/audit.ts";
import type { AgentEvent } from "../core/events.ts";
import { sha256 } from "./audit-chain.ts";

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
