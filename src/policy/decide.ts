import type { Decision, MatchedRule, Mode, Verdict } from "../core/decision.ts";
import { strictest, VERDICTS } from "../core/decision.ts";
import type { Effect } from "./effects/effect.ts";
import { withFetched } from "./effects/fetched.ts";
import type { Called } from "./effects/called.ts";
import { Walk } from "./effects/walk.ts";
import { rulingOf } from "./judge/effects.ts";
import { placesFor } from "./judge/places.ts";
import type { Ruling } from "./judge/ruling.ts";
import { textRuling } from "./judge/text.ts";
import type { IgnoreRules } from "./paths/ignore.ts";
import { Models } from "./models/apply.ts";
import { PROGRAMS } from "./models/table.ts";
import { applyRules } from "./rules/apply.ts";
import type { UserRules } from "./rules/rule.ts";
import { readInner, readShell } from "./shell/read.ts";

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

interface JudgedText {
  readonly rulings: readonly Ruling[];
  readonly effects: readonly Effect[];
  readonly flawed: boolean;
}

export interface Looked {
  readonly flaws: readonly Ruling[];
  readonly calls: readonly Called[];
  readonly effects: readonly Effect[];
}

/** Judges command lines. It reads its tables once; beyond that it keeps nothing. */
export class CommandPolicy {
  private readonly models = new Models(PROGRAMS);

  /** Pure and total: whatever the text is, there is a decision. */
  decide(text: string, context: CommandContext): CommandDecision {
    const { rulings, effects, flawed } = this.judge(text, context);
    return { ...decisionOf(rulings, context.mode, text.length), effects, flawed };
  }

  /** The same decision, for people. */
  explain(text: string, context: CommandContext): Explained {
    const { rulings, effects, flawed } = this.judge(text, context);
    const decision = decisionOf(rulings, context.mode, text.length);
    const standings = decision.rules.map((rule) => {
      const same = rulings.filter((ruling) => keyOf(ruling) === keyOf(rule));
      const verdicts = same.map((ruling) => verdictIn(context.mode, ruling));
      return {
        // None makes the rule that nothing is done.
        verdict: verdicts.length === 0 ? "allow" : strictest(verdicts),
        contained: same.every(({ contained }) => contained),
      };
    });
    return { decision: { ...decision, effects, flawed }, standings };
  }

  private judge(text: string, context: CommandContext): JudgedText {
    const { flaws, calls, effects } = this.look(text, context);
    const places = placesFor(context);
    const rulings = effects.map((effect) => rulingOf(effect, places));
    const { rules = [], mode } = context;
    const ruled = rules.length === 0 ? rulings : applyRules(rules, { calls, effects, rulings, places, mode });
    return { rulings: [...flaws, ...ruled], effects, flawed: flaws.length > 0 };
  }

  /** What the text runs and does, and what is wrong with it as a text. */
  look(text: string, { workspace, home, folder = workspace }: Omit<CommandContext, "mode">): Looked {
    const { tree, doubts } = readShell(text);
    const walk = new Walk({ models: this.models, home, workspace, readShell: readInner });
    walk.node(tree, { folders: [folder], variables: new Map(), functions: new Set() }, "nothing");
    return { flaws: doubts.map(textRuling), calls: walk.calls, effects: withFetched(walk.effects) };
  }
}

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
