import {
  type Decision,
  type MatchedRule,
  type Mode,
  type Verdict,
  strictest,
  VERDICTS,
} from "../core/decision.ts";
import { applyRules } from "./apply-rules.ts";
import { type Ruling, textRuling, withObjectedFlaws, withObjections } from "./containment.ts";
import { Assumptions } from "./effects/assume.ts";
import { type Called, programOf, withLater } from "./effects/call-effects.ts";
import { EffectWalk } from "./effects/effect-walk.ts";
import type { Effect } from "./effects/effect.ts";
import { withFetched } from "./effects/fetched-code.ts";
import type { Scope } from "./effects/scope.ts";
import { type PolicyPlaces, rulingOf, placesFor } from "./judge-effects.ts";
import type { IgnoreRules } from "./paths/ignore-rules.ts";
import { Models } from "./programs/program-models.ts";
import type { UserRules } from "./rule.ts";
import { readInner, readShell, type ShellText } from "./shell/read-shell.ts";

export interface CommandContext {
  readonly mode: Mode;
  /** Absolute path. */
  readonly workspace: string;
  /** Absolute path of the folder in which the command starts; the workspace by default. */
  readonly folder?: string;
  readonly home: string;
  /** Rules of `.harnessignore`: hidden files are not read. */
  readonly ignore?: IgnoreRules;
  /** Rules of the user and of a trusted project. */
  readonly rules?: UserRules;
  /**
   * Hosts that the box may reach, in the form of `allow_domains`. With any of them, nothing unknown counts as
   * contained.
   */
  readonly granted?: readonly string[];
  /** Hosts that the box may not reach, whatever is granted. */
  readonly denied?: readonly string[];
  /** Whether `node_modules` of this folder or of one above it has the program; if left out, none is found there. */
  readonly installed?: (name: string, folder: string) => boolean;
}

export interface CommandDecision extends Decision {
  readonly effects: readonly Effect[];
}

export interface Judgement {
  readonly decision: CommandDecision;
  readonly rulings: readonly Ruling[];
  /** For an `ask`: the rules of the decision that do not allow. */
  readonly asks: readonly MatchedRule[];
  /** The text itself has a flaw (see `flaws`): it may do more than its effects say. */
  readonly flawed: boolean;
}

/** The verdict of a single rule of a decision. */
interface Standing {
  readonly verdict: Verdict;
  readonly contained: boolean;
}

export interface ExplainedDecision {
  readonly decision: CommandDecision;
  /** One for each rule of the decision. */
  readonly standings: readonly Standing[];
}

export interface TextEffects {
  readonly flaws: readonly Ruling[];
  readonly calls: readonly Called[];
  readonly effects: readonly Effect[];
}

/** What is judged, and where. */
interface Judged {
  readonly text: string;
  readonly places: PolicyPlaces;
  readonly context: CommandContext;
}

/** Judges command lines. Its only state is the models of programs that it has prepared. */
export class CommandPolicy {
  readonly #models = new Models();

  /** Pure and total: every text gets a decision. */
  decide(text: string, context: CommandContext): CommandDecision {
    return this.judge(text, context).decision;
  }

  /** The same decision with one standing per rule, for display. */
  explain(text: string, context: CommandContext): ExplainedDecision {
    const { rulings, decision } = this.judge(text, context);
    const contains = containsIn(context);
    const standings = decision.rules.map((rule) => {
      const same = rulings.filter((ruling) => isSame(ruling, rule));
      const verdicts = same.map((ruling) => verdictIn(context.mode, ruling));
      return {
        // No ruling belongs to the rule `harmless`.
        verdict: verdicts.length === 0 ? "allow" : strictest(verdicts),
        contained: decision.contained || same.every(contains),
      };
    });
    return { decision, standings };
  }

  judge(text: string, context: CommandContext): Judgement {
    const read = readShell(text);
    const judged = { text, places: placesFor(context), context };
    const looked = this.#walked(read, context, false);
    const rulings = this.#ruled(looked, judged);
    const contains = containsIn(context);
    const decision = decisionOf(rulings, { contains, mode: context.mode, length: text.length });
    const again =
      looked.assumable &&
      text.length <= MAX_ASSUMED_LENGTH &&
      rulings.some(({ contained }) => contained !== "always");
    // The second walk only answers containment; the decision is not changed.
    const contained = again
      ? rulings.every((ruling) => contains(ruling) || isOpen(ruling)) &&
        this.#ruled(this.#walked(read, context, true), judged).every(contains)
      : decision.contained;
    const { effects, flaws } = looked;
    const asks = decision.decision === "ask" ? askingOf(decision.rules, rulings, context.mode) : [];
    return { rulings, asks, decision: { ...decision, contained, effects }, flawed: flaws.length > 0 };
  }

  #ruled(looked: TextEffects, { text, places, context }: Judged): readonly Ruling[] {
    const { flaws, calls, effects } = looked;
    const knows = (name: string): boolean => this.#models.find(programOf(name)[0]) !== undefined;
    const known = effects.map((effect) => rulingOf(effect, places));
    const rulings = withObjections(known, { text, calls, effects, knows }, places);
    const { rules = [], mode } = context;
    const all = rules.length === 0 ? rulings : applyRules(rules, { calls, effects, rulings, places, mode });
    return flaws.length === 0 ? all : [...withObjectedFlaws(flaws, text, places), ...all];
  }

  /** The effects of the text and the flaws of the text, without a decision. */
  look(text: string, context: Omit<CommandContext, "mode">): TextEffects {
    return this.#walked(readShell(text), context, false);
  }

  #walked(
    { tree, doubts }: ShellText,
    { workspace, home, folder = workspace, installed = notInstalled }: Omit<CommandContext, "mode">,
    assumes: boolean,
  ): TextEffects & { readonly assumable: boolean } {
    const assumptions = assumes ? new Assumptions(tree, workspace) : null;
    const models = this.#models;
    const walk = new EffectWalk({ models, home, workspace, installed, assumptions, readShell: readInner });
    const scope = { folders: [folder], ...NOTHING_SET };
    walk.node(tree, scope, "nothing");
    walk.lookAround(tree, 0, scope);
    const { calls, effects, assumable, strays } = walk;
    return {
      flaws: doubts.map(textRuling),
      calls,
      effects: withFetched(withLater(effects, strays), walk),
      assumable,
    };
  }
}

const notInstalled = (): boolean => false;

/** The scope at the start of a text. Scopes are never changed, so all texts share it. */
const NOTHING_SET: Pick<Scope, "variables" | "functions"> = { variables: new Map(), functions: new Set() };

type Contains = (ruling: Ruling) => boolean;

/** Whether the box alone contains what a ruling is about. */
const containsIn = ({ granted = [] }: CommandContext): Contains =>
  granted.length === 0 ? ({ contained }) => contained !== "never" : ({ contained }) => contained === "always";

/** Longest text, in characters, that is walked a second time for containment. */
const MAX_ASSUMED_LENGTH = 8192;

/** Rulings that the second walk may resolve; not where a word names the secret that an unknown read could be of. */
const isOpen = ({ id, contained }: Ruling): boolean =>
  !(id === "read.unknown" && contained === "never") &&
  /^(?:word|env)\.|^shell\.(?:expansion|builtin|function)$|\.unknown$|^code\.(?:elsewhere|input|inline)$|^command\.elsewhere$/.test(
    id,
  );

const STRICTEST_FIRST = VERDICTS.toReversed();

/** Bound on the rules of a decision, for texts of thousands of commands. */
const MAX_RULES = 200;

interface Deciding {
  readonly contains: Contains;
  readonly mode: Mode;
  readonly length: number;
}

function decisionOf(rulings: readonly Ruling[], { contains, mode, length }: Deciding): Decision {
  const verdicts = rulings.map((ruling) => verdictIn(mode, ruling));
  const [only] = verdicts;
  const rules = distinct(worstFirst(rulings, verdicts, contains));
  return {
    decision:
      verdicts.length === 1 && only !== undefined
        ? only
        : (STRICTEST_FIRST.find((verdict) => verdicts.includes(verdict)) ?? "allow"),
    contained: rulings.every(contains),
    rules: rules.length > 0 ? rules : [{ id: "harmless", reason: "it only prints", span: [0, length] }],
  };
}

/**
 * Puts the strictest verdict first, and among equal ones those that are not contained: they are the reason why an
 * unattended run refuses.
 */
function worstFirst(
  rulings: readonly Ruling[],
  verdicts: readonly Verdict[],
  contains: Contains,
): readonly Ruling[] {
  if (rulings.length < 2) return rulings;
  const ranks = rulings.map((ruling, at) => {
    const milder = contains(ruling) ? (ruling.contained === "always" ? 2 : 1) : 0;
    return milder - 3 * VERDICTS.indexOf(verdicts[at] as Verdict);
  });
  const order = rulings.map((_, at) => at).toSorted((a, b) => (ranks[a] ?? 0) - (ranks[b] ?? 0));
  return order.slice(0, MAX_RULES * 5).map((at) => rulings[at] as Ruling);
}

function verdictIn(mode: Mode, { verdict, readOnly }: Ruling): Verdict {
  if (mode === "read-only") return readOnly;
  return mode === "danger-full-access" && verdict === "ask" ? "allow" : verdict;
}

function askingOf(
  rules: readonly MatchedRule[],
  rulings: readonly Ruling[],
  mode: Mode,
): readonly MatchedRule[] {
  const asking = rulings.filter((ruling) => verdictIn(mode, ruling) !== "allow");
  return rules.filter((rule) => asking.some((ruling) => isSame(ruling, rule)));
}

/** The rules of the rulings, each once. */
function distinct(rulings: readonly Ruling[]): readonly MatchedRule[] {
  const rules: MatchedRule[] = [];
  for (const ruling of rulings)
    if (rules.length < MAX_RULES && !rules.some((rule) => isSame(rule, ruling))) rules.push(ruleOf(ruling));
  return rules;
}

const ruleOf = ({ id, reason, span }: Ruling): MatchedRule => ({ id, reason, span });

const isSame = (a: MatchedRule, b: MatchedRule): boolean =>
  a.span[0] === b.span[0] && a.span[1] === b.span[1] && a.id === b.id && a.reason === b.reason;
