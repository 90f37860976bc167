/** Events of a run as recorded in its session, and the proposals for them. */
import type { AgentEvent } from "../../src/core/events.ts";
import type { Mode } from "../../src/core/decision.ts";
import { type Proposal, proposePolicy } from "../../src/policy/propose-policy.ts";
import { type Recording, recordingOf } from "../../src/policy/propose-grants.ts";
import type { UserRules } from "../../src/policy/rule.ts";
import { AROUND, policy } from "./judged.ts";

interface Did {
  readonly mode?: Mode;
  readonly granted?: readonly string[];
  /** Granted by a person with the first command. */
  readonly byPerson?: readonly string[];
  readonly workspace?: string;
  /** Each ran; one with `!` was denied, one with `?` asked and was refused. */
  readonly commands?: readonly string[];
  readonly folder?: string;
  readonly files?: readonly (readonly [op: "reads" | "writes", path: string])[];
  /** `GET host:port`, or `- host:port` if no method was seen; one with `!` was refused. */
  readonly connections?: readonly string[];
}

const RUN = { run: "r", seq: 1 } as const;

function eventsOf({
  mode = "workspace-write",
  granted,
  byPerson,
  workspace = AROUND.workspace,
  commands = [],
  folder,
  files = [],
  connections = [],
}: Did): readonly AgentEvent[] {
  const about = { task: "", session: "s", resumed: false, workspace, mode, provider: "", model: "" };
  const nothing = { commands: [], reads: [], writes: [], hosts: [] };
  const decided = (text: string, at: number): AgentEvent => {
    const cmd = text.replace(/^[!?] /, "");
    const { decision, contained, rules } = policy.decide(cmd, { ...AROUND, workspace, mode });
    const where = folder === undefined ? {} : { folder };
    const judged = { ...nothing, commands: [cmd], ...where };
    const runs = text === cmd;
    const by = runs ? "contained" : "nobody";
    const grant =
      at === 0 && byPerson !== undefined ? { grant: { domains: byPerson, for: "session" } as const } : {};
    return {
      type: "call.decided",
      ...RUN,
      call: "c",
      decision,
      contained,
      rules,
      judged,
      runs,
      by,
      ...grant,
    };
  };
  return [
    { type: "run.started", ...RUN, ...about, ...(granted === undefined ? {} : { granted }) },
    ...commands.map(decided),
    ...files.map(([op, path]): AgentEvent => {
      const judged = { ...nothing, [op]: [path] };
      const decision = { decision: "allow", contained: true, rules: [] } as const;
      return { type: "call.decided", ...RUN, call: "c", ...decision, judged, runs: true, by: "policy" };
    }),
    ...connections.map((line): AgentEvent => {
      const [method = "", at = ""] = line.replace(/^!/, "").split(" ");
      const colon = at.lastIndexOf(":");
      const where = { host: at.slice(0, colon), port: Number(at.slice(colon + 1)) };
      const asked = { ...where, method: method === "-" ? null : method };
      const verdict = line.startsWith("!") ? "denied" : "allowed";
      return { type: "connection", ...RUN, ...asked, verdict, rule: "granted", reason: "", up: 1, down: 1 };
    }),
  ];
}

export const recorded = (...runs: readonly Did[]): Recording => recordingOf(runs.flatMap(eventsOf));

export const proposed = (did: Did, rules: UserRules = []): Proposal =>
  proposePolicy(recorded(did), { ...AROUND, workspace: did.workspace ?? AROUND.workspace, rules });
