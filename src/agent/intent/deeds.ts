import { begins, wordsOf } from "./lexicon.ts";

/** What asks for something to be done. Only looked for beside a question: all that is no question is a task anyway. */

const VERBS: ReadonlySet<string> = new Set(
  wordsOf(`add adjust allow analyse analyze append apply assert assign audit avoid backport benchmark bring build bump
  bundle cache calculate call change check clean clear clone close code combine commit compile complete compute
  configure connect continue convert copy correct count create cut debug declare decrease delete deploy deprecate detect
  diagnose disable discard document double-check download draft draw drop dump edit eliminate emit enable encode enforce
  ensure evaluate execute expand expose extend extract fetch fill filter finalize find finish fix follow force fork
  format generate get give go group guard handle hide implement improve include increase initialize inline insert inspect
  install integrate introduce invert investigate iterate join keep kill limit link lint list load locate log look lower
  make mark measure merge migrate minify mock modernize modify monitor mount move normalize open optimise optimize order
  organise organize output overwrite pack parallelize parse patch pin plan polish port prepare prevent print produce
  profile prove provide prune publish pull push put raise read rebase rebuild record recreate redo reduce refactor
  reformat regenerate reject release reload remove rename reorder reorganize repair replace reply report reproduce rerun
  reset resolve respond restart restore restrict restructure retry reuse revert review rewrite run sanitize save scan
  search secure select send separate serialize set show shorten simplify skip solve sort speed split squash stage start
  stash stop store strip swap switch sync take throw tidy track transform translate trigger trim try tweak turn undo
  unify uninstall unpack unzip update upgrade use validate verify wire wrap write`),
);

/** Asks for words, not for deeds. */
export const ASKING = new RegExp(
  `${
    begins(`explain describe define compare summarize summarise outline elaborate recommend tell_me tell_us say_what
    say_why say_how say_where walk_me_through walk_us_through teach_me help_me_understand help_me_to_understand remind_me
    i'd_like_to_know i_would_like_to_know i_want_to_know i'd_like_to_understand i_want_to_understand i'm_wondering
    i_wonder i'm_curious do_you_know does_anyone_know difference_between differences_between pros_and_cons any_idea`)
      .source
  }|^(?:give|show) (?:me|us) (?:an?|the|some) (?:[\\w-]+ )?(?:overview|summary|explanation|description|idea|introduction|tour|example of)\\b`,
  "u",
);

const REQUEST =
  /^(?:(?:can|could|would|will|won't|can't) (?:you|u|someone|somebody)|would you mind|are you able to|i(?:'d| would) like you to|do you mind|mind|would it be possible(?: for you)? to|is it possible for you to)\b,? ?(?:please |kindly |also |just |maybe |perhaps |possibly |quickly )*(.*)$/su;
const PERCEIVING = /^(?:see|know|think|believe)\b/;
const JOINT_REQUEST = /^(?:can|could|shall) we (?:please |also |just |maybe )*([a-z-]+)/;
const PROPOSAL =
  /^(?:(?:how|what) about (?:we |you )?[a-z]+(?:ing\b| it\b| the\b)|how about (?:we|you)\b|why (?:not|don't (?:we|you)|dont (?:we|you))\b|let'?s\b|let us\b)/;
/** Behind a question, in the same sentence. */
const AND_DO =
  /(?:\b(?:and|then)|,) (?:then |please |also )*(?:fix|repair|correct|solve|change|update|add|remove|write|save|apply|implement|rewrite|refactor|put|store) (?:it|that|them|this|the|an?|tests?|its)\b/;
const AND_REQUEST =
  /(?:\band|,|;) (?:can|could|would|will) you (?!please (?:explain|tell)|explain|tell|describe|say|think)/;
const YOU_COULD = /\byou (?:could|can|would|might)(?: please)? ([a-z-]+)/;
const THEN_DO = /,(?: also| please| then| just)* ([a-z-]+)[^,?]*$/;
const PLEASE_DO =
  /\bplease (?:fix|add|change|update|remove|write|make|implement|repair|correct|run|create)\b/;
const INTO_FILE =
  /^\w+ (?:in|into) |\bdocstrings?\b|\bwith (?:a )?comments?\b|\b(?:in|into|to) (?:a|an|the|its own)? ?(?:new )?(?:file\b|[\w/-]+\.(?:md|txt|json|html|rst|csv)\b)/;
/** Only a program can tell: no tool that reads would. */
const OF_THE_SHELL: readonly RegExp[] = [
  /^(?:do|does|did|will|are|is) (?:all |any |the |our |my |these |this |unit |integration )*(?:tests?|suite|test suite|build|code|it|project|program|ci|linter|lint|types?)\b(?: still| now| even| all)*\s+(?:pass|compile|build|succeed|passing|green|typecheck|compiling|building)\b/,
  /\b(?:last|latest|recent|previous|newest) commits?\b|\bgit (?:status|log|diff|blame|history)\b|\b(?:current|which|what) branch\b|\b(?:uncommitted|unstaged|staged)\b|\bwhat(?:'s| has|'ve| is| did)? (?:i |we |they )?changed\b|^who (?:changed|committed|last)\b/,
  /^(?:is|are|which|what) .*\b(?:installed|up and running)\b|^(?:is|are) the (?:\w+ )*running\b/,
  /^(?:how many|which|what|are) .*\b(?:tests?|checks) (?:are |currently )*(?:fail|pass)(?:ing|ed)?\b|^what (?:does|do) .*\b(?:print|output|say)\b.*\bwhen (?:you|i|we) run\b/,
  /^what(?:'s| is) the (?:output|result) of (?:running\b|`|(?:node|python3?|npm|make|go|cargo) )/,
  /^(?:are|is|which) .*dependenc(?:y|ies) .*(?:up to date|outdated)\b/,
  /^how (?:long|fast) (?:do|does) .*(?:tests?|build|suite|it take to (?:run|build|compile|start)|run)\b|^what time is it\b/,
];

export type Deed = { readonly kind: "task" } | { readonly kind: "none"; readonly rest: string };

const TASK: Deed = { kind: "task" };

/** Whether a sentence, in lower case and without its greeting, asks for a deed; else what is left of its politeness. */
export function deedIn(sentence: string): Deed {
  const request = REQUEST.exec(sentence)?.[1];
  const rest = request ?? sentence;
  if (PROPOSAL.test(rest)) return TASK;
  if (ASKING.test(rest)) return alsoDoes(rest) || INTO_FILE.test(rest) ? TASK : { kind: "none", rest };
  if (request !== undefined) return PERCEIVING.test(rest) ? { kind: "none", rest: sentence } : TASK;
  return beginsWithDeed(sentence) || alsoDoes(sentence) || needsShell(sentence)
    ? TASK
    : { kind: "none", rest };
}

function beginsWithDeed(sentence: string): boolean {
  const [first = ""] = /^[a-z-]+/.exec(sentence) ?? [];
  return VERBS.has(first) || VERBS.has(JOINT_REQUEST.exec(sentence)?.[1] ?? "");
}

function needsShell(sentence: string): boolean {
  return !/^how (?:to|do|can|would)\b/.test(sentence) && OF_THE_SHELL.some((form) => form.test(sentence));
}

function alsoDoes(sentence: string): boolean {
  if (AND_REQUEST.test(sentence) || PLEASE_DO.test(sentence)) return true;
  const could = YOU_COULD.exec(sentence)?.[1] ?? "";
  const then = sentence.endsWith("?") ? "" : (THEN_DO.exec(sentence)?.[1] ?? "");
  if (VERBS.has(could) || VERBS.has(then)) return true;
  return (
    AND_DO.test(sentence) && !/^(?:how|what (?:happens|would)|why|should|can i|does|is it)\b/.test(sentence)
  );
}
