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
const CIRCUMSTANCE = /^`|^(?:i|i'm|i've|it|it's|the|this|that|we|my|there|they|he|she)\b/;
const DEMAND = /\b(?:want|need|needs|like|rather|should|must|ought|has to|have to|expect|expected)\b/;

/**
 * What a request is about, by its words alone. Whatever is neither a greeting nor shaped as a question is a task: to read
 * a task as a question leaves it undone, the reverse only costs.
 */
export function guessIntent(text: string): Guess {
  if (text.length > MOST_CHARACTERS || text.split(/\s+/).length > MOST_WORDS) return "change";
  const sentences = sentencesOf(text);
  const matter = sentences.filter(({ kind }) => kind !== "greeting" && kind !== "talk");
  if (matter.length === 0) return sentences.length === 0 ? "change" : "direct";
  if (matter.some(isTask)) return "change";
  const foreign = guessForeign(matter.map((each) => each.text).join(" "), text);
  if (foreign !== undefined) return foreign;
  if (matter.some(({ kind }) => kind === "look-up")) return "web";
  return ofQuestions(
    text,
    matter.filter(({ kind }) => kind !== "reservation"),
  );
}

/** In whatever language it asks for it. */
function isTask({ kind, text }: Sentence): boolean {
  return kind === "task" || (kind === "question" && guessForeign(text, text) === "change");
}

/** Questions with what is said around them. */
function ofQuestions(text: string, said: readonly Sentence[]): Guess {
  const asked = said.filter(({ kind }) => kind === "question");
  const last = said.at(-1);
  if (last === undefined || asked.length === 0) return "change";
  const more = last.kind === "statement";
  if (more && (!CIRCUMSTANCE.test(last.text) || DEMAND.test(last.text))) return "change";
  if (more && asked.every((each) => marksOf(each.text) === "none" && isOfTheWorld(each.text)))
    return "change";
  const topic = topicOf(text, asked);
  return topic === "unsure" && said.length > asked.length ? "repo" : topic;
}

function topicOf(text: string, asked: readonly Sentence[]): Guess {
  const marks = marksOf(text);
  const questions = asked.map((each) => each.text);
  if (questions.some((question) => ON_THE_WEB.test(question)) && (marks === "none" || /https?:/.test(text)))
    return "web";
  const pointed = questions.map((question) => marksOf(question));
  if (marks === "here" || marks === "names" || pointed.includes("here")) return "repo";
  if (questions.every(isGeneral)) return "direct";
  if (marks === "nouns") return "repo";
  return questions.every(isOfTheWorld) ? "direct" : "unsure";
}
