import { foreignMarks, marksOf } from "./project.ts";
import type { Guess } from "./guess.ts";
import { isOfTheWorld } from "./world.ts";

/** The commonest questions of other languages. What is not seen to be one is a task, as in English. */

const SCRIPT =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Devanagari}\p{Script=Thai}]/u;

const QUESTION_WORDS =
  /^¿|^qu'|^que |^(?:was (?:ist|sind|macht|machen|bedeutet|passiert|tut|kann|soll|hei(?:ß|ss)t|bewirkt|steht)|wie|warum|wieso|weshalb|wozu|woher|wo|wer|wann|welche[rsmn]?|gibt es|wofür|quel(?:le)?s?|comment(?= (?!the|this|out|all|each))|pourquoi|où|qui|quand|combien|est-ce|qu[eé]|cu[aá]l(?:es)?|c[oó]mo|por qu[eéê]|porqu[eê]|d[oó]nde|qui[eé]n|cu[aá]ndo|cu[aá]nt[oa]s?|hay|che (?:cosa)?|cos[a']|qual[ei]?|quais|come (?:funziona|si|posso|è|sono|mai)|perch[eé]|dove (?:si|è|sono|viene|vengono|sta)|chi|quando|quant[aeio]|o que|onde|quem|что|как|почему|зачем|где|кто|когда|какой|какая|какие|сколько)(?![\p{L}])/u;
const PARTICLES =
  /(?:吗|呢|什么|怎么|为什么|哪里|哪个|如何|ですか|ますか|でしょうか|どこ|なぜ|까|나요|인가요)[。.\s]*$|[?？؟]["')»\s]*$/u;
const ASKING =
  /^(?:bitte )?(?:erklär|erläuter|beschreib|explique|expliquez|décris|décrivez|résume|explica|explícame|explicame|(?:describe|resume) (?:el|la|los|las|est[ea]|l.)(?= )|spiega|descriv|riassum|expliqu|descrev|объясни|опиши|расскажи|解释|解釈|说明|説明)|(?:kannst|könntest|können|könnten) (?:du|sie) (?:mir |uns )?(?:bitte )?(?:erklären|sagen|beschreiben|erläutern)|(?:peux|pourrais|pouvez|pourriez)-(?:tu|vous) (?:m'|me |nous )?(?:expliquer|dire|décrire)|(?:puedes|podrías|puede) (?:explicar|decir|describir)|(?:puoi|potresti) (?:spiegar|dir|descriver)|pode(?:ria)? (?:me )?(?:explicar|dizer|descrever)/u;
const POLITE =
  /(?:kannst|könntest|können|könnten|würdest|würden) (?:du|sie)\b|(?:peux|pourrais|pouvez|pourriez)-(?:tu|vous)|^¿?(?:puedes|podrías|podrias|puede usted|podría)|^(?:puoi|potresti|può)\b|^(?:você pode|você poderia|pode |poderia |podes )|^(?:можешь|можете|мог бы|могли бы)|^请|てください|てくれ|주세요|해줘/u;
const ENGLISH = /^(?:what|why|how|where|which|who|is|are|does|do|can|could|explain)\b/;

/** Undefined for a text that is to be read as English. */
export function guessForeign(text: string): Guess | undefined {
  const lower = text.toLowerCase().replaceAll("’", "'").trim();
  const bare = lower.replace(/^[¿¡]\s*/u, "");
  if (ENGLISH.test(lower)) return undefined;
  const begins = QUESTION_WORDS.test(lower) || QUESTION_WORDS.test(bare);
  if (ASKING.test(bare)) return topicOf(text, bare);
  if (POLITE.test(bare)) return "change";
  if (SCRIPT.test(lower)) return PARTICLES.test(lower) ? topicOf(text, bare) : "change";
  if (!begins) return undefined;
  return PARTICLES.test(lower) || isShort(lower) ? topicOf(text, bare) : "change";
}

function topicOf(text: string, bare: string): Guess {
  const marks = marksOf(text);
  if (marks === "here" || marks === "names" || foreignMarks(text)) return "repo";
  return isOfTheWorld(bare) ? "direct" : "unsure";
}

/** A question without its mark; a longer text that begins like one may be anything. */
const isShort = (text: string): boolean => text.length < 100 && !/[.!?]\s+\S/.test(text);
