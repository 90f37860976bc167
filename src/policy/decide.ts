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
import { withLater } from "./effects/call-effects.ts";
import type { Called } from "./effects/walk.ts";
import { Assumptions } from "./effects/assume.ts";
import { EffectWalk } from "./effects/effect-walk.ts";
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
    const standings = decision.rules.map((rule) => {
      const same = rulings.filter((ruling) => keyOf(ruling) === keyOf(rule));
      const verdicts = same.map((ruling) => verdictIn(context.mode, ruling));
      return {
        // None makes the rule that nothing is done.
        verdict: verdicts.length === 0 ? "allow" : strictest(verdicts),
        contained: decision.contained || same.every(({ contained }) => contained),
      };
    });
    return { decision, standings };
  }

  judge(text: string, context: CommandContext): Judgement {
    const read = readShell(text);
    const looked = this.walked(read, context, false);
    const rulings = ruled(looked, context);
    const decision = decisionOf(rulings, context.mode, text.length);
    // Only what it says of containment is looked at again: the decision stands.
    const contained =
      decision.contained ||
      (text.length <= LONGEST_ASSUMED &&
        looked.assumable &&
        rulings.every(isOpen) &&
        ruled(this.walked(read, context, true), context).every((ruling) => ruling.contained));
    const { effects, flaws } = looked;
    return { rulings, decision: { ...decision, contained, effects }, flawed: flaws.length > 0 };
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

function ruled({ flaws, calls, effects }: Looked, context: CommandContext): readonly Ruling[] {
  const places = placesFor(context);
  const rulings = effects.map((effect) => rulingOf(effect, places));
  const { rules = [], mode } = context;
  const all = rules.length === 0 ? rulings : applyRules(rules, { calls, effects, rulings, places, mode });
  return [...flaws, ...all];
}

/** Characters of a text that is looked at once more; what is longer was not written for one call of a shell. */
const LONGEST_ASSUMED = 8192;

/** What is known after all may answer it. */
const isOpen = ({ contained, id }: Ruling): boolean =>
  contained ||
  /^(?:word|env)\.|^shell\.(?:expansion|builtin|function)$|\.unknown$|^code\.(?:elsewhere|input|inline)$|^command\.elsewhere$/.test(
    id,
  );

/** Of a text of thousands of commands not every rule is told. */
const MOST_RULES = 200;

function decisionOf(rulings: readonly Ruling[], mode: Mode, length: number): Decision {
  const byVerdict = new Map<Verdict, Ruling[]>(VERDICTS.map((verdict) => [verdict, []]));
  for (const ruling of rulings) byVerdict.get(verdictIn(mode, ruling))?.push(ruling);
  const strictestFirst = VERDICTS.toReversed();
  const sorted = strictestFirst.flatMap((verdict) => worstFirst(byVerdict.get(verdict) ?? []));
  const rules = distinct(sorted.slice(0, MOST_RULES * 5)).slice(0, MOST_RULES);
  return {
    decision: strictestFirst.find((verdict) => (byVerdict.get(verdict)?.length ?? 0) > 0) ?? "allow",
    contained: rulings.every(({ contained }) => contained),
    rules: rules.length > 0 ? rules : [{ id: "harmless", reason: "it only prints", span: [0, length] }],
  };
}

/** What is not contained is why nobody there means no, so it is told before what would have run. */
const worstFirst = (rulings: readonly Ruling[]): readonly Ruling[] =>
  rulings.length < 2 ? rulings : rulings.toSorted((a, b) => Number(a.contained) - Number(b.contained));

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
