import { has, oneOf } from "./lexicon.ts";

/** What is asked about as such, and not as a part of some project. */

const TECHNOLOGIES = `python javascript typescript java c c++ c# rust go golang ruby php perl swift kotlin scala haskell
  elixir erlang clojure lisp scheme ocaml f# lua julia sql nosql html css sass react vue vue.js angular svelte next.js
  node node.js nodejs deno bun django flask fastapi rails spring laravel postgres postgresql mysql sqlite mongodb redis
  kafka rabbitmq elasticsearch git vim emacs vscode bash zsh linux unix posix macos windows docker kubernetes terraform
  ansible aws azure gcp nginx apache npm yarn pnpm pip cargo webpack vite json yaml toml xml csv regex regular_expressions
  rest graphql grpc http https tls ssl ssh dns tcp udp tcp/ip oauth oauth2 jwt cors utf-8 unicode ascii markdown latex
  chmod chown sudo grep awk sed curl wget tar cron systemd ls numpy pandas pytorch tensorflow assembly wasm webassembly`;

const CONCEPTS = `closure closures recursion monad monads mutex mutexes semaphore deadlock deadlocks hash_map hash_maps
  hash_table hash_tables quicksort mergesort binary_search linked_list linked_lists polymorphism inheritance encapsulation
  idempotent idempotency garbage_collection concurrency parallelism coroutine coroutines generics pattern_matching
  static_typing dynamic_typing functional_programming object-oriented_programming design_patterns machine_learning
  blockchain big_o observer_pattern singleton_pattern dependency_injection eventual_consistency two-phase_commit
  cap_theorem solid_principles time_complexity public-key_cryptography`;

const EVERYDAY = `capital population president king queen country countries city cities planet planets moon sun sky
  earth mars weather universe galaxy ocean oceans mountain river speed_of_light year today century war cat cats dog dogs
  bird birds animal animals human humans people life love food recipe bread pizza coffee music song movie film book
  books kilobyte kilobytes miles kilometers celsius fahrenheit gravity atom atoms square_root hauptstadt capitale`;

const OF_THE_WORLD = has(`${TECHNOLOGIES} ${CONCEPTS} ${EVERYDAY}`);

/** A language or a program is named as the place: the function that is asked about is one of its own. */
export const IN_TECHNOLOGY = new RegExp(
  `\\b(?:in|with) (?:plain |modern |vanilla )?${oneOf(TECHNOLOGIES)}(?![\\p{L}\\p{N}_/-]|\\.\\p{L})`,
  "u",
);

const BARE = String.raw`(?!the |this |that |these |our |my |your |it\b|in |on |at |wrong |missing )[\p{L}\p{N}#+/&'.-]+(?: (?!does|do |is |are |work)[\p{L}\p{N}#+/&'.-]+){0,3}`;

/** Forms of questions that ask for general knowledge, once nothing in them points at a project. */
const FORMS: readonly RegExp[] = [
  /^[\d\s+*/().^%x-]*\d[\d\s+*/().^%x-]*[=?\s]*$/,
  /^(?:what(?:'s| is)|how much is|calculate)? ?\d+(?:\.\d+)? ?[-+*/^x%]/,
  /\b(?:stand|short) for\b|\bmean(?:ing)?(?: of)?\b/,
  /\bdifferences? between\b|\bpros and cons\b|\b(?:dis)?advantages of\b|\bversus\b|\bvs\b/,
  /\b(?:is|are) \w+ (?:faster|slower|better|safer|worse|easier|harder|older|bigger)\b|\bwhich (?:one )?is (?:better|faster)\b/,
  /^(?:what|what's|what is|which is) the (?:best|fastest|most|easiest|simplest|biggest|largest|oldest|first) /,
  /\b(?:what|how|why|when|should i)\b.* (?:use|learn|is|does|(?:purpose|point|role|definition|meaning) of|choose|prefer) an? /,
  /^(?:give|show) me an example of an? /,
  /\bwhat an? [\p{L} -]+ (?:is|does|means)\b/u,
  /\bthe [\w-]+ (?:pattern|principle|algorithm|theorem|paradigm|protocol|law)\b/,
  new RegExp(`^(?:what|who)(?: is|'s| are|'re) ${BARE}[?.!\\s]*$`, "u"),
  new RegExp(`^(?:what|who) ${BARE} (?:is|are|means?)[?.!\\s]*$`, "u"),
  new RegExp(
    `^(?:explain|describe|define|compare|outline|teach me) (?:me |to me |us )?(?!how|why|where|when|what)${BARE}[?.!\\s]*$`,
    "u",
  ),
  /\b(?:was ist|wer ist|was sind) (?:eine? |[\p{L}-]+\?)|\b(?:unterschied zwischen|différence entre|diferencia entre|diferença entre|differenza (?:tra|fra))\b/u,
  /qu'est-ce qu(?:e |'une? )|qu[eé] es una? |cos'è una? |o que é uma? |что такое|什么是|とは何/u,
];

/** Forms that say so only where no thing is named that projects have. */
const WEAK_FORMS: readonly RegExp[] = [
  /^(?:who|when) (?:\w+ed|wrote|made|was|were|is|did|won)\b/,
  /^(?:what|what's|what is|what are) the [\p{L} -]+ (?:of|in|for) [\p{L} ]+[?.!\s]*$/u,
  /^how to\b|\bhow (?:do you|does one) /,
];

/** Asks for what can be answered without a look at any project, whatever else is in it. */
export const isGeneral = (question: string): boolean => FORMS.some((form) => form.test(question));

/** The same, where nothing in the question belongs to a project. */
export const isOfTheWorld = (question: string): boolean =>
  OF_THE_WORLD.test(question) || isGeneral(question) || WEAK_FORMS.some((form) => form.test(question));
