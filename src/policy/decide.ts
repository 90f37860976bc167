import {
  type Decision,
  type MatchedRule,
  type Mode,
  type Verdict,
  strictest,
  VERDICTS,
} from "../core/decision.ts";
import type { Effect } from "./effects/effect.ts";
import { withFetched } from "./effects/redirects.ts";
import { programOf, withLater } from "./effects/call-effects.ts";
import type { Called } from "./effects/walk.ts";
import { Assumptions } from "./effects/assume.ts";
import { EffectWalk } from "./effects/effect-walk.ts";
import { withObjectedFlaws, withObjections } from "./containment.ts";
import { rulingOf, placesFor } from "./judge-effects.ts";
import { type Ruling, textRuling } from "./ruling.ts";
import type { IgnoreRules } from "./paths/ignore-rules.ts";
import { Models } from "./programs/program-models.ts";
import { ProgramTable } from "./programs/program-table.ts";
import { applyRules } from "./rules/apply-rules.ts";
import type { UserRules } from "./rules/rule.ts";
import { readInner, readShell, type ShellText } from "./shell/read-shell.ts";

export interface CommandContext {
  readonly mode: Mode;
  /** Absolute. */
  readonly workspace: string;
  /** Where the command starts; the workspace when left out. */
  readonly folder?: string;
  readonly home: string;
  /** `.harnessignore`: what it hides is not read. */
  readonly ignore?: IgnoreRules;
  /** Of the user, and of a trusted project. */
  readonly rules?: UserRules;
  /** Hosts that the box may reach, as `allow_domains` names them. Where there is one, nothing unknown is contained. */
  readonly granted?: readonly string[];
}

export interface CommandDecision extends Decision {
  readonly effects: readonly Effect[];
}

export interface Judgement {
  readonly decision: CommandDecision;
  readonly rulings: readonly Ruling[];
  /** Something is wrong with it as a text: it may do more than the effects say. */
  readonly flawed: boolean;
}

/** What one rule of a decision says by itself. */
interface Standing {
  readonly verdict: Verdict;
  readonly contained: boolean;
}

export interface Explained {
  readonly decision: CommandDecision;
  /** One for each rule of the decision. */
  readonly standings: readonly Standing[];
}

export interface Looked {
  readonly flaws: readonly Ruling[];
  readonly calls: readonly Called[];
  readonly effects: readonly Effect[];
}

/** Judges command lines. It reads its tables once; beyond that it keeps nothing. */
export class CommandPolicy {
  private readonly models = new Models(new ProgramTable());

  /** Pure and total: whatever the text is, there is a decision. */
  decide(text: string, context: CommandContext): CommandDecision {
    return this.judge(text, context).decision;
  }

  /** The same decision, for people. */
  explain(text: string, context: CommandContext): Explained {
    const { rulings, decision } = this.judge(text, context);
    const holds = holderOf(context);
    const standings = decision.rules.map((rule) => {
      const same = rulings.filter((ruling) => keyOf(ruling) === keyOf(rule));
      const verdicts = same.map((ruling) => verdictIn(context.mode, ruling));
      return {
        // None makes the rule that nothing is done.
        verdict: verdicts.length === 0 ? "allow" : strictest(verdicts),
        contained: decision.contained || same.every(holds),
      };
    });
    return { decision, standings };
  }

  judge(text: string, context: CommandContext): Judgement {
    const read = readShell(text);
    const looked = this.walked(read, context, false);
    const rulings = this.ruled(looked, text, context);
    const holds = holderOf(context);
    const decision = decisionOf(rulings, { holds, mode: context.mode, length: text.length });
    const again =
      looked.assumable &&
      text.length <= MAX_ASSUMED_LENGTH &&
      rulings.some(({ contained }) => contained !== "always");
    // Only what it says of containment is looked at again: the decision stands.
    const contained = again
      ? rulings.every((ruling) => holds(ruling) || isOpen(ruling)) &&
        this.ruled(this.walked(read, context, true), text, context).every(holds)
      : decision.contained;
    const { effects, flaws } = looked;
    return { rulings, decision: { ...decision, contained, effects }, flawed: flaws.length > 0 };
  }

  private ruled(looked: Looked, text: string, context: CommandContext): readonly Ruling[] {
    const { flaws, calls, effects } = looked;
    const places = placesFor(context);
    const knows = (name: string): boolean => this.models.find(programOf(name)[0]) !== undefined;
    const known = effects.map((effect) => rulingOf(effect, places));
    const rulings = withObjections(known, { text, calls, effects, knows }, places);
    const { rules = [], mode } = context;
    const all = rules.length === 0 ? rulings : applyRules(rules, { calls, effects, rulings, places, mode });
    return [...withObjectedFlaws(flaws, text, places), ...all];
  }

  /** What the text runs and does, and what is wrong with it as a text. */
  look(text: string, context: Omit<CommandContext, "mode">): Looked {
    return this.walked(readShell(text), context, false);
  }

  private walked(
    { tree, doubts }: ShellText,
    { workspace, home, folder = workspace }: Omit<CommandContext, "mode">,
    assumes: boolean,
  ): Looked & { readonly assumable: boolean } {
    const assumptions = assumes ? new Assumptions(tree, workspace) : null;
    const walk = new EffectWalk({ models: this.models, home, workspace, assumptions, readShell: readInner });
    walk.node(tree, { folders: [folder], variables: new Map(), functions: new Set() }, "nothing");
    const { calls, effects, assumable, strays } = walk;
    return {
      flaws: doubts.map(textRuling),
      calls,
      effects: withFetched(withLater(effects, strays)),
      assumable,
    };
  }
}

type Holds = (ruling: Ruling) => boolean;

/** Whether the box alone holds what a ruling is about. */
const holderOf = ({ granted = [] }: CommandContext): Holds =>
  granted.length === 0 ? ({ contained }) => contained !== "never" : ({ contained }) => contained === "always";

/** Characters of a text that is looked at once more; what is longer was not written for one call of a shell. */
const MAX_ASSUMED_LENGTH = 8192;

/** What is known after all may answer it. */
const isOpen = ({ id }: Ruling): boolean =>
  /^(?:word|env)\.|^shell\.(?:expansion|builtin|function)$|\.unknown$|^code\.(?:elsewhere|input|inline)$|^command\.elsewhere$/.test(
    id,
  );

/** Of a text of thousands of commands not every rule is told. */
const MAX_RULES = 200;

interface Deciding {
  readonly holds: Holds;
  readonly mode: Mode;
  readonly length: number;
}

function decisionOf(rulings: readonly Ruling[], { holds, mode, length }: Deciding): Decision {
  const byVerdict = new Map<Verdict, Ruling[]>(VERDICTS.map((verdict) => [verdict, []]));
  for (const ruling of rulings) byVerdict.get(verdictIn(mode, ruling))?.push(ruling);
  const strictestFirst = VERDICTS.toReversed();
  const sorted = strictestFirst.flatMap((verdict) => worstFirst(byVerdict.get(verdict) ?? [], holds));
  const rules = distinct(sorted.slice(0, MAX_RULES * 5)).slice(0, MAX_RULES);
  return {
    decision: strictestFirst.find((verdict) => (byVerdict.get(verdict)?.length ?? 0) > 0) ?? "allow",
    contained: rulings.every(holds),
    rules: rules.length > 0 ? rules : [{ id: "harmless", reason: "it only prints", span: [0, length] }],
  };
}

/** What is not contained is why nobody there means no, so it is told before what would have run. */
function worstFirst(rulings: readonly Ruling[], holds: Holds): readonly Ruling[] {
  const rank = (ruling: Ruling): number => (holds(ruling) ? (ruling.contained === "always" ? 2 : 1) : 0);
  return rulings.length < 2 ? rulings : rulings.toSorted((a, b) => rank(a) - rank(b));
}

function verdictIn(mode: Mode, { verdict, readOnly }: Ruling): Verdict {
  if (mode === "read-only") return readOnly;
  return mode === "danger-full-access" && verdict === "ask" ? "allow" : verdict;
}

function distinct(rulings: readonly Ruling[]): readonly MatchedRule[] {
  const seen = new Set<string>();
  const rules: MatchedRule[] = [];
  for (const ruling of rulings) {
    const { id, reason, span } = ruling;
    const key = keyOf(ruling);
    if (!seen.has(key)) rules.push({ id, reason, span });
    seen.add(key);
  }
  return rules;
}

const keyOf = ({ id, reason, span }: MatchedRule): string => `${id} ${span[0]} ${span[1]} ${reason}`;
