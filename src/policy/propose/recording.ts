import type { Mode, Verdict } from "../../core/decision.ts";
import type { AgentEvent } from "../../core/events.ts";

type Of<T extends AgentEvent["type"]> = Extract<AgentEvent, { readonly type: T }>;

/** A judged command, with its folder and mode. */
export interface RecordedCommand {
  readonly text: string;
  /** The workspace when left out. */
  readonly folder?: string;
  readonly mode: Mode;
}

interface RecordedFile {
  readonly path: string;
  readonly op: "read" | "write";
  readonly mode: Mode;
}

/** A refused call. */
interface RecordedRefusal {
  readonly what: string;
  /** The command, if the call was one. */
  readonly command?: RecordedCommand;
  readonly decision: Verdict;
  readonly rule: string;
  readonly reason: string;
}

export type RecordedConnection = Pick<
  Of<"connection">,
  "host" | "port" | "method" | "verdict" | "rule" | "reason"
>;

/** Everything in runs that a proposal of a policy and grants is based on. */
export interface Recording {
  /** The workspaces of all runs; a proposal needs a single one. */
  readonly workspaces: ReadonlySet<string>;
  readonly ran: readonly RecordedCommand[];
  readonly files: readonly RecordedFile[];
  readonly refused: readonly RecordedRefusal[];
  /** How often each rule matched something that ran. */
  readonly rules: ReadonlyMap<string, number>;
  readonly connections: readonly RecordedConnection[];
  /** Grants of the boxes, as the user wrote them. */
  readonly granted: ReadonlySet<string>;
  /** A run had an unfiltered network, so its connections are not known. */
  readonly unfiltered: boolean;
}

class RecordingBuilder {
  readonly workspaces = new Set<string>();
  readonly ran: RecordedCommand[] = [];
  readonly files: RecordedFile[] = [];
  readonly refused: RecordedRefusal[] = [];
  readonly rules = new Map<string, number>();
  readonly connections: RecordedConnection[] = [];
  readonly granted = new Set<string>();
  unfiltered = false;
  #mode: Mode = "workspace-write";

  begin({ mode, workspace, granted = [] }: Of<"run.started">): void {
    this.#mode = mode;
    this.workspaces.add(workspace);
    for (const each of granted) this.granted.add(each);
    if (mode === "danger-full-access") this.unfiltered = true;
  }

  call(event: Of<"call.decided">): void {
    for (const each of event.grant?.domains ?? []) this.granted.add(each);
    if (event.judged === undefined) return;
    const { commands, folder, reads, writes } = event.judged;
    const where = folder === undefined ? { mode: this.#mode } : { folder, mode: this.#mode };
    const commandsJudged = commands.map((text): RecordedCommand => ({ text, ...where }));
    if (!event.runs) return this.#refusal(event, commandsJudged, [...writes, ...reads]);
    this.ran.push(...commandsJudged);
    for (const path of reads) this.files.push({ path, op: "read", mode: this.#mode });
    for (const path of writes) this.files.push({ path, op: "write", mode: this.#mode });
    for (const id of new Set(event.rules.map((rule) => rule.id)))
      this.rules.set(id, (this.rules.get(id) ?? 0) + 1);
  }

  #refusal(
    { rules: [first], decision }: Of<"call.decided">,
    commands: readonly RecordedCommand[],
    paths: readonly string[],
  ): void {
    const why = { decision, rule: first?.id ?? "none", reason: first?.reason ?? "" };
    for (const command of commands) this.refused.push({ what: command.text, command, ...why });
    if (commands.length === 0) this.refused.push({ what: paths.join(", "), ...why });
  }
}

/** Reads the events of one or more runs, each from its first one on. */
export function recordingOf(events: Iterable<AgentEvent>): Recording {
  const collected = new RecordingBuilder();
  for (const event of events) {
    if (event.type === "run.started") collected.begin(event);
    else if (event.type === "call.decided") collected.call(event);
    else if (event.type === "connection") collected.connections.push(event);
  }
  return collected;
}
