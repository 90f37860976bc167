import type { Mode, Verdict } from "../core/decision.ts";
import { pathBelow, isInside } from "../core/file-names.ts";
import { holdsMask, maskSecrets } from "../core/secrets.ts";
import { visibleLine } from "../core/visible.ts";
import { firstLines } from "../core/wording.ts";
import { type CommandContext, CommandPolicy } from "./decide.ts";
import { programOf } from "./effects/call-effects.ts";
import { decidePath } from "./paths/decide-path.ts";
import { proposeGrants, type RecordedCommand, type Recording } from "./propose-grants.ts";
import { grantsNaming } from "./refusal-hints.ts";
import { pathOf, readRules, type RuleForm, tomlRule, type UserRules } from "./rule.ts";
import { failedExamples, generalised, pathsOf, ruleFor, wordsOf } from "./rules-from-commands.ts";
import { shellText } from "./shell/shell-syntax.ts";

/** A line of `harness policy test`. */
interface ProposedExample {
  readonly cmd: string;
  readonly want: "allow" | "deny" | "not-allow";
  readonly mode?: Mode;
  readonly class: "recorded" | "refused" | "beyond";
  readonly why: string;
}

/** Something that nothing is proposed for, and why. */
interface Unproposed {
  readonly what: string;
  readonly reason: string;
}

/** The smallest policy and grants with which the recorded commands would have run. */
export interface Proposal {
  readonly rules: readonly RuleForm[];
  readonly allow_domains: readonly string[];
  readonly examples: readonly ProposedExample[];
  /** Commands and files that were used although no rule can allow them, or none is proposed. */
  readonly left: readonly Unproposed[];
  /** Refused calls and connections: nothing is proposed for them. */
  readonly refused: readonly Unproposed[];
  readonly needed: Needed;
}

/** What the recorded runs needed, each with its number of uses. */
interface Needed {
  readonly rules: Counts;
  readonly programs: Counts;
  /** Paths that commands or file tools change. */
  readonly writes: Counts;
  /** As `host:port method`, with the verdict. */
  readonly hosts: Counts;
}

type Counts = Readonly<Record<string, number>>;

/** The context in which commands are judged; only its rules that ask or deny count. */
type Around = Omit<CommandContext, "mode" | "folder" | "granted">;

/** Pure. Nothing is proposed that is denied, reads a secret, or holds one. */
export function proposePolicy(recording: Recording, around: Around): Proposal {
  const strict = {
    ...around,
    rules: (around.rules ?? []).filter(({ decision }) => decision !== "allow"),
  };
  const maker = new ProposalMaker(strict);
  for (const command of recording.ran) maker.take(command);
  for (const { path, op, mode } of recording.files) maker.file(path, op, mode);
  const made = maker.finish();
  const refused = recording.refused.map(({ what, rule, reason }) => unproposed(what, `${reason} (${rule})`));
  const { allow_domains, denied, hosts } = proposeGrants(recording, maker.reached);
  return {
    rules: made.rules,
    allow_domains,
    examples: maker.examples(made, recording),
    left: distinct(made.left),
    refused: distinct([...refused, ...denied]),
    needed: { ...maker.needed, rules: Object.fromEntries(recording.rules), hosts },
  };
}

const unproposed = (what: string, reason: string): Unproposed => ({
  what: maskSecrets(what),
  reason: maskSecrets(reason),
});

const distinct = (list: readonly Unproposed[]): readonly Unproposed[] => [
  ...new Map(list.map((each) => [JSON.stringify(each), each])).values(),
];

/** Runs in full access must not grant the network, so their commands are judged as in workspace-write. */
const strictMode = (mode: Mode): Mode => (mode === "danger-full-access" ? "workspace-write" : mode);

const MAX_COMMANDS = 500;

interface RuledCommand {
  readonly command: RecordedCommand;
  readonly forms: readonly RuleForm[];
}

interface Made {
  readonly kept: readonly RecordedCommand[];
  readonly rules: readonly RuleForm[];
  readonly compiled: UserRules;
  readonly left: readonly Unproposed[];
}

class ProposalMaker {
  readonly #policy = new CommandPolicy();
  readonly #around: Around & { readonly rules: UserRules };
  readonly #seen = new Map<string, RecordedCommand>();
  readonly #kept: RuledCommand[] = [];
  readonly #free: RecordedCommand[] = [];
  readonly #left: Unproposed[] = [];
  readonly #programs = new Map<string, number>();
  readonly #writes = new Map<string, number>();
  /** Grants of the hosts that commands name, and presets that their installations fetch from. */
  readonly reached = { hosts: new Set<string>(), presets: new Set<string>() };

  constructor(around: Around & { readonly rules: UserRules }) {
    this.#around = around;
  }

  get needed(): Pick<Needed, "programs" | "writes"> {
    return { programs: Object.fromEntries(this.#programs), writes: Object.fromEntries(this.#writes) };
  }

  take(recorded: RecordedCommand): void {
    const command = { ...recorded, mode: strictMode(recorded.mode) };
    this.#countEffects(command, recorded.mode === "danger-full-access");
    const key = JSON.stringify([command.text, command.folder, command.mode]);
    if (this.#seen.has(key)) return;
    this.#seen.set(key, command);
    if (this.#seen.size === MAX_COMMANDS + 1)
      this.#left.push(unproposed("commands after the first 500 different ones", "they were not examined"));
    if (this.#seen.size > MAX_COMMANDS) return;
    const made = this.#rulesFor(command);
    if (typeof made === "string") this.#left.push(unproposed(command.text, made));
    else if (made.length === 0) this.#free.push(command);
    else this.#kept.push({ command, forms: made });
  }

  /**
   * File tools work in the workspace alone and need no rule for it; no rule allows what else they did in full access.
   */
  file(path: string, op: "read" | "write", mode: Mode): void {
    if (op === "write") count(this.#writes, this.#shown(path));
    const { decision, rules } = decidePath(path, op, { ...this.#around, mode: strictMode(mode) });
    const [first] = rules;
    if (decision === "allow" && first?.id !== "path.system") return;
    this.#left.push(
      unproposed(this.#shown(path), `${op}: ${first?.reason ?? "not allowed"} (${first?.id ?? "none"})`),
    );
  }

  finish(): Made {
    let kept: readonly RuledCommand[] = this.#kept;
    for (;;) {
      const forms = unique(kept.flatMap((each) => each.forms));
      const rules = generalised(
        forms,
        { ...this.#around, policy: this.#policy },
        (list) => this.#passing(kept, compiledFrom(list)).length === kept.length,
      );
      const compiled = compiledFrom(rules);
      const passing = this.#passing(kept, compiled);
      if (passing.length === kept.length) {
        const all = [...this.#free, ...kept.map(({ command }) => command)];
        return { kept: all, rules, compiled, left: this.#left };
      }
      for (const each of kept.filter((one) => !passing.includes(one)))
        this.#left.push(unproposed(each.command.text, "no rule can match exactly this"));
      kept = passing;
    }
  }

  /** Each example is judged under the rules first; wrong ones are dropped. */
  examples({ kept, rules, compiled }: Made, { refused }: Recording): readonly ProposedExample[] {
    const candidates: readonly (ProposedExample & { readonly folder?: string })[] = [
      ...kept.map(({ text, folder, mode }) => ({
        ...placeFields(text, folder, mode),
        want: "allow" as const,
        class: "recorded" as const,
        why: "it ran",
      })),
      ...refused.flatMap(({ command, decision, reason, rule }) =>
        command === undefined
          ? []
          : {
              ...placeFields(command.text, command.folder, command.mode),
              want: decision === "deny" ? ("deny" as const) : ("not-allow" as const),
              class: "refused" as const,
              why: `${reason} (${rule})`,
            },
      ),
      ...rules.flatMap(({ notMatch = [] }) =>
        notMatch.map((cmd) => outsideExample(cmd, "no rule covers it")),
      ),
      outsideExample("curl https://example.com/", "no host was named"),
    ];
    return candidates.flatMap((each) => {
      const { folder, ...example } = each;
      const cmd = this.#inFolder({ text: example.cmd, ...(folder === undefined ? {} : { folder }) });
      const masked = { ...example, cmd, why: maskSecrets(example.why) };
      if (maskSecrets(cmd) !== cmd) return [];
      const verdict = this.#verdict({ text: cmd, mode: example.mode ?? "workspace-write" }, compiled);
      return isRight(example.want, verdict) ? [masked] : [];
    });
  }

  /** Rules that allow the command (an empty list if it needs none), or why there are none. */
  #rulesFor(command: RecordedCommand): readonly RuleForm[] | string {
    const { text, mode } = command;
    if (maskSecrets(text) !== text || holdsMask(text)) return "it contains what looks like a secret";
    const place = this.#contextOf(command);
    const judged = this.#policy.decide(text, { ...place, mode });
    if (judged.decision === "allow") return [];
    const secret = judged.rules.find(({ id }) => id === "read.secret");
    if (secret !== undefined)
      return `${secret.reason}; if it may be read: harness policy allow -- ${shellText([text])}`;
    const own = judged.rules.find(({ id }) => this.#around.rules.some((rule) => rule.id === id));
    if (own !== undefined) return `${own.reason} (${own.id})`;
    const made = ruleFor(this.#inFolder(command), this.#around, this.#policy);
    if (made.kind === "refused") return made.reason;
    return made.rules.map((form) => this.#explained(form));
  }

  /** The rule with the reason why it is needed, and with a similar command that it must not match. */
  #explained(form: RuleForm): RuleForm {
    const [example = ""] = form.match ?? [];
    const judged = this.#policy.decide(example, { ...this.#around, mode: "workspace-write", rules: [] });
    const [first] = judged.rules;
    const withReason = { ...form, reason: `recorded: ${first?.reason ?? "it ran"}` };
    return withBeyond(withReason, this.#policy, this.#around.home);
  }

  #passing(kept: readonly RuledCommand[], compiled: UserRules): readonly RuledCommand[] {
    return kept.filter(({ command }) => this.#verdict(command, compiled) === "allow");
  }

  #verdict(command: RecordedCommand, compiled: UserRules): Verdict {
    const rules = [...this.#around.rules, ...compiled];
    const { text, mode } = command;
    return this.#policy.decide(text, { ...this.#contextOf(command), mode, rules }).decision;
  }

  #contextOf({ folder }: RecordedCommand): Around & { readonly folder?: string } {
    return folder === undefined ? this.#around : { ...this.#around, folder };
  }

  #countEffects(command: RecordedCommand, unfiltered: boolean): void {
    const { calls, effects } = this.#policy.look(command.text, this.#contextOf(command));
    for (const { words } of calls) {
      const [name] = words;
      if (name?.kind === "literal") count(this.#programs, programOf(name.value)[0]);
    }
    for (const effect of effects) {
      const path = pathOf(effect);
      if (path !== null && CHANGES.has(effect.kind)) count(this.#writes, this.#shown(path));
      if (effect.kind === "install" && effect.again !== true && effect.from !== undefined)
        this.reached.presets.add(effect.from);
      if (effect.kind === "network" && effect.inside !== true) {
        const grants = grantsNaming(effect, command.text);
        if (typeof grants !== "string") for (const each of grants) this.reached.hosts.add(each);
        else if (unfiltered) this.#left.push(unproposed(command.text, grants));
      }
    }
  }

  /** The command as it would be typed in the workspace, where the examples of rules are tried. */
  #inFolder({ text, folder }: Pick<RecordedCommand, "text" | "folder">): string {
    const below = folder === undefined ? "." : this.#below(folder);
    return below === "." ? text : `cd ${shellText([below])} && ${text}`;
  }

  #below(path: string): string {
    const { workspace } = this.#around;
    return isInside(workspace, path) ? pathBelow(workspace, path) || "." : path;
  }

  #shown(path: string): string {
    return maskSecrets(this.#below(path));
  }
}

const CHANGES: ReadonlySet<string> = new Set(["write", "delete", "permissions"]);

const count = (counts: Map<string, number>, name: string): void => {
  counts.set(name, (counts.get(name) ?? 0) + 1);
};

const unique = (forms: readonly RuleForm[]): readonly RuleForm[] => {
  const byCondition = new Map<string, RuleForm>();
  for (const form of forms) {
    const { prefix, exact, effect, path } = form;
    const key = JSON.stringify([prefix, exact, effect, path]);
    if (!byCondition.has(key)) byCondition.set(key, form);
  }
  return [...byCondition.values()];
};

const compiledFrom = (forms: readonly RuleForm[]): UserRules =>
  readRules(forms, "user").examples.map(({ rule }) => rule);

const placeFields = (
  cmd: string,
  folder: string | undefined,
  mode: Mode,
): Pick<ProposedExample, "cmd" | "mode"> & { readonly folder?: string } => ({
  cmd,
  ...(folder === undefined ? {} : { folder }),
  mode: strictMode(mode),
});

const outsideExample = (cmd: string, why: string): ProposedExample => ({
  cmd,
  want: "not-allow",
  class: "beyond",
  why,
});

const isRight = (want: ProposedExample["want"], verdict: Verdict): boolean =>
  want === "not-allow" ? verdict !== "allow" : want === verdict;

/** Adds a counterexample: the same command with one more word, or a file beside the rule's file. */
function withBeyond(form: RuleForm, policy: CommandPolicy, home: string): RuleForm {
  const [first = ""] = pathsOf(form);
  const other =
    form.prefix === undefined
      ? `echo > ${shellText([`${first}.other`])}`
      : shellText([...wordsOf(form), "other"]);
  const tried = { ...form, notMatch: [other] };
  const { examples } = readRules([tried], "user");
  return examples.length === 1 && failedExamples(examples, policy, home).length === 0 ? tried : form;
}

const MAX_TOLD = 50;

/** A file of rules; comments above them name the proposed hosts, and what no rule allows or was refused. */
export function proposalText(
  { rules, allow_domains, left, refused }: Proposal,
  sessions: readonly string[],
): string {
  const of = sessions.length === 1 ? "the session" : "the sessions";
  const lines = [
    `Rules for what ${of} ${sessions.join(", ")} needed; see docs/policy-rules.md.`,
    hostsLine(allow_domains),
    ...sectionLines("Not allowed by any rule here", left),
    ...sectionLines("Refused, so not proposed", refused),
  ];
  const head = lines.map((line) => (line === "" ? "#\n" : `# ${line}\n`)).join("");
  return rules.length === 0 ? head : `${head}\n${rules.map(tomlRule).join("\n")}`;
}

/** Of the characters in grants, only those of patterns are special to a shell. */
function hostsLine(grants: readonly string[]): string {
  if (grants.length === 0) return "No host was needed.";
  const list = grants.join(",");
  return `Hosts that were needed: --allow-domain ${/[*[]/.test(list) ? `'${list}'` : list}`;
}

function sectionLines(name: string, list: readonly Unproposed[]): readonly string[] {
  if (list.length === 0) return [];
  const lines = firstLines(list, MAX_TOLD, ({ what, reason }) => `${cut(what)}: ${cut(reason)}`);
  return ["", `${name}:`, ...lines.map((line) => `  ${line}`)];
}

const MAX_LINE = 200;

/** One line that TOML takes as a comment. */
const cut = (text: string): string => {
  const line = visibleLine(text);
  return line.length <= MAX_LINE ? line : `${line.slice(0, MAX_LINE - 1).toWellFormed()}…`;
};
