import { type Decision, type MatchedRule, type ProgramPlace, strictest } from "../core/decision.ts";
import type { Facts } from "../core/tool.ts";
import { type CommandContext, CommandPolicy, type Judgement } from "../policy/decide.ts";
import { changesSomething, type Effect, effectText } from "../policy/effects/effect.ts";
import { decideTool } from "../policy/decide-tool.ts";
import { decideToolPath, type LinkFacts } from "../policy/paths/decide-path.ts";
import type { PathAccess } from "../policy/paths/path-place.ts";
import { networkStep, type NetworkStep, wantedGrants } from "../policy/refusal-hints.ts";

export interface Judged extends Decision {
  /** What the call acts on, for lists of refusals: the command, or the path. */
  readonly target: string;
  /** Whether the call is meant to change something, if that can be told. */
  readonly changes: boolean;
  /** Not known to leave the workspace unchanged. */
  readonly mayWrite: boolean;
  /** What the call starts continues after it has ended. */
  readonly lasting: boolean;
  /** A shell command, not the work of a file tool. */
  readonly command: boolean;
  /** Hosts that the call would reach, if that can be told. */
  readonly hosts: readonly string[];
  /** Grants that would make the call contained, in the form of `allow_domains`; empty when no grant does. */
  readonly grants: readonly string[];
  /** How to get the network that the call needs and lacks; left out when it needs none, or has it. */
  readonly network?: NetworkStep;
  /** What the call would do, in words, if a person has to be asked; empty otherwise. */
  readonly effects: readonly string[];
  /** The rules that make the call ask; the other rules allow their part. */
  readonly asks: readonly MatchedRule[];
}

/** Judges a call by the policy on everything that it will touch. Pure. */
export interface Judge {
  /** `tool`: the name by which a user's rule may refer to it. */
  judge(facts: Facts, tool?: string): Judged;
}

export interface JudgeContext extends Omit<CommandContext, "folder"> {
  readonly links: LinkFacts;
}

const PROGRAMS: Readonly<Record<ProgramPlace, string>> = {
  box: "runs an added program in the box",
  host: "runs an added program on this machine, outside the box",
};

const NOTHING: Decision = {
  decision: "allow",
  contained: true,
  rules: [{ id: "harmless", reason: "it touches nothing", span: [0, 0] }],
};

export function judgeIn(around: JudgeContext): Judge {
  const policy = new CommandPolicy();
  const path = (file: string, op: PathAccess): Decision => decideToolPath(file, op, around);
  return {
    judge: (
      { commands, folder, reads, writes, hosts, services = [], lasting = false, program },
      tool = "",
    ) => {
      const context = { ...around, ...(folder === undefined ? {} : { folder }) };
      const judged = commands.map((text) => policy.judge(text, context));
      const effects = judged.flatMap(({ decision }) => decision.effects);
      const running = program === undefined ? {} : { program };
      const byTool = decideTool({ tool, hosts, services, ...running }, around);
      const decisions: readonly Decision[] = [
        ...(byTool === undefined ? [] : [byTool]),
        ...judged.map(({ decision: { decision, contained, rules } }) => ({ decision, contained, rules })),
        ...writes.map((file) => path(file, "write")),
        ...reads.map((file) => path(file, "read")),
      ];
      const whole = combined(decisions);
      const texts = [
        ...effects.map(effectText),
        ...writes.map((file) => `writes ${file}`),
        ...reads.map((file) => `reads ${file}`),
        ...[...hosts, ...services].map((host) => `reaches ${host}`),
        ...(program === undefined ? [] : [PROGRAMS[program]]),
      ];
      return {
        ...whole,
        asks: askingRules(decisions, judged),
        effects: whole.decision === "ask" ? [...new Set(texts)] : [],
        target:
          [...new Set([...commands, ...writes, ...reads, ...hosts, ...services])].join(", ") ||
          (byTool === undefined ? "" : tool),
        command: commands.length > 0,
        hosts: [...new Set([...hosts, ...services, ...effects.flatMap(hostsOf)])],
        grants: grantsIn(
          [
            ...(byTool === undefined ? [] : [byTool.grants]),
            ...judged.map((each, at) => wantedGrants(policy, each, commands[at] ?? "", context)),
          ],
          decisions,
        ),
        ...networkOf(judged.map(({ decision }, at) => networkStep(decision, commands[at] ?? "", context))),
        lasting,
        mayWrite: writes.length > 0 || program !== undefined || judged.some(mayWrite),
        changes: writes.length > 0 || effects.some(changesSomething),
      };
    },
  };
}

/** Of a command, only its rules that ask; of everything else, all rules of a decision that asks. */
function askingRules(decisions: readonly Decision[], judged: readonly Judgement[]): readonly MatchedRule[] {
  const ofCommands = new Set(judged.flatMap(({ decision }) => decision.rules));
  const asking = decisions.filter(({ decision }) => decision === "ask").flatMap(({ rules }) => rules);
  return [...asking.filter((rule) => !ofCommands.has(rule)), ...judged.flatMap(({ asks }) => asks)];
}

/** The step of the first command that lacks the network. */
function networkOf(steps: readonly (NetworkStep | undefined)[]): Pick<Judged, "network"> {
  const network = steps.find((step) => step !== undefined);
  return network === undefined ? {} : { network };
}

/** Grants that all uncontained commands need together; empty when one of them would not be contained by grants. */
function grantsIn(wanted: readonly (readonly string[])[], decisions: readonly Decision[]): readonly string[] {
  const short = decisions.some(({ contained }, at) => !contained && (wanted[at] ?? []).length === 0);
  return short ? [] : [...new Set(wanted.flat())];
}

function combined(decisions: readonly Decision[]): Decision {
  if (decisions.length === 0) return NOTHING;
  const decision = strictest(decisions.map((each) => each.decision));
  const ranked = decisions.toSorted((a, b) => rank(b, decision) - rank(a, decision));
  return {
    decision,
    contained: decisions.every(({ contained }) => contained),
    rules: ranked.flatMap(({ rules }) => rules),
  };
}

const rank = (one: Decision, strict: Decision["decision"]): number => (one.decision === strict ? 1 : 0);

const hostsOf = (effect: Effect): readonly string[] => (effect.kind === "network" ? effect.hosts : []);

/** Effects that touch no file, whoever causes them. A request to a host writes none unless an effect says so. */
const HARMLESS: ReadonlySet<Effect["kind"]> = new Set(["read", "network", "process"]);

const mayWrite = ({ decision: { effects }, flawed }: Judgement): boolean =>
  flawed ||
  effects.some((effect) => !HARMLESS.has(effect.kind) && !(isWrite(effect) && effect.path === "/dev/null"));

const isWrite = (effect: Effect): effect is Extract<Effect, { readonly kind: "write" }> =>
  effect.kind === "write";
