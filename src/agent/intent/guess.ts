import type { Intent } from "../../core/events.ts";
import { guessForeign } from "./foreign.ts";
import { marksOf } from "./project.ts";
import { type Sentence, sentencesOf } from "./sentences.ts";
import { isGeneral, isOfTheWorld } from "./world.ts";

export type Guess = Intent | "unsure";

/** Whoever writes more describes a task, whatever questions are in it. */
const MOST_WORDS = 120;
const MOST_CHARACTERS = 1200;

const ON_THE_WEB =
  /https?:\/\/|\bwww\.|\b(?:latest|newest|current|most recent) (?:stable |lts )?(?:version|release)s? of\b|\bnewer (?:version|release) of\b|\b(?:on|search|from) the (?:web|internet)\b|\bonline\b|\bweather (?:in|today|tomorrow|like)\b|\bin the news\b|\bnews today\b|\b(?:current|today's) (?:stock )?(?:price|rate|score)\b|\bstock price\b|\bexchange rate\b/;

/** A statement behind a question that belongs to it; any other may be what is wanted. */
const CIRCUMSTANCE =
  /^`|^(?:i|i'm|i've|it|it's|the|this|that|we|my|there|they|he|she)\b(?! (?:\w+ )?should\b)/;

/**
 * What a request is about, by its words alone. Whatever is neither a greeting nor shaped as a question is a task: to read
 * a task as a question leaves it undone, the reverse only costs.
 */
export function guessIntent(text: string): Guess {
  if (text.length > MOST_CHARACTERS || text.split(/\s+/).length > MOST_WORDS) return "change";
  const sentences = sentencesOf(text);
  const kinds = new Set(sentences.map(({ kind }) => kind));
  if (kinds.size === 0) return "change";
  if (sentences.every(({ kind }) => kind === "greeting" || kind === "talk")) return "direct";
  const foreign = guessForeign(withoutGreeting(text, sentences));
  if (foreign !== undefined) return foreign;
  if (kinds.has("task")) return "change";
  if (kinds.has("look-up")) return "web";
  const said = sentences.filter(({ kind }) => kind === "question" || kind === "statement");
  const asked = said.filter(({ kind }) => kind === "question");
  const last = said.at(-1);
  if (
    last === undefined ||
    asked.length === 0 ||
    (last.kind === "statement" && !CIRCUMSTANCE.test(last.text))
  )
    return "change";
  return topicOf(text, asked, said.length > asked.length);
}

/** A greeting of one sentence says nothing of the language of the others. */
function withoutGreeting(text: string, sentences: readonly Sentence[]): string {
  const [first, second] = sentences;
  if (first?.kind !== "greeting" && first?.kind !== "talk") return text;
  return second === undefined ? text : text.slice(text.toLowerCase().indexOf(second.text.slice(0, 8)));
}

function topicOf(text: string, asked: readonly Sentence[], situation: boolean): Guess {
  const marks = marksOf(text);
  const questions = asked.map((each) => each.text);
  if (questions.some((question) => ON_THE_WEB.test(question)) && (marks === "none" || /https?:/.test(text)))
    return "web";
  const pointed = questions.map((question) => marksOf(question));
  if (marks === "here" || marks === "names" || pointed.includes("here")) return "repo";
  if (questions.every(isGeneral)) return "direct";
  if (marks === "nouns") return "repo";
  if (questions.every(isOfTheWorld)) return "direct";
  return situation ? "repo" : "unsure";
}
