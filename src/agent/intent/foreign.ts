import { foreignMarks, marksOf } from "./project.ts";
import type { Intent } from "../../core/events.ts";
import { begins } from "./lexicon.ts";
import { isOfTheWorld } from "./world.ts";

/** The commonest questions of other languages. What is not seen to be one is a task, as in English. */

const SCRIPT =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Devanagari}\p{Script=Thai}]/u;

const QUESTION_WORDS =
  begins(`was_ist was_sind was_macht was_machen was_bedeutet was_passiert was_tut was_kann was_soll
  was_heißt was_bewirkt was_steht wie warum wieso weshalb wozu woher wo wer wann welche welcher welches welchen welchem
  gibt_es wofür
  que quel quelle quels quelles comment_fonctionne comment_est comment_sont comment_on comment_je comment_puis-je
  comment_faire comment_ça comment_marche comment_se pourquoi où qui quand combien est-ce
  qué cuál cuáles cual cómo como por_qué por_que porque dónde donde quién cuándo cuánto cuánta cuántos cuántas hay
  che cosa cos'è qual quale quali come_funziona come_si come_posso come_è come_sono come_mai perché perche dove_si dove_è
  dove_sono dove_viene dove_vengono dove_sta chi quando quanto quanta quanti quante
  o_que onde quem quais por_quê
  что как почему зачем где кто когда какой какая какие сколько`);
const ELIDED = /^¿|^qu'/;
const PARTICLES =
  /(?:吗|呢|什么|怎么|为什么|哪里|哪个|如何|ですか|ますか|でしょうか|どこ|なぜ|까|나요|인가요)[。.\s]*$|[?？؟]["')»\s]*$/u;
const ASKING =
  /^(?:bitte )?(?:erklär|erläuter|beschreib|explique|expliquez|décris|décrivez|résume|explica|explícame|explicame|(?:describe|resume) (?:el|la|los|las|est[ea]|l.)(?= )|spiega|descriv|riassum|expliqu|descrev|объясни|опиши|расскажи|解释|解釈|说明|説明)|(?:kannst|könntest|können|könnten) (?:du|sie) (?:mir |uns )?(?:bitte )?(?:erklären|sagen|beschreiben|erläutern)|(?:peux|pourrais|pouvez|pourriez)-(?:tu|vous) (?:m'|me |nous )?(?:expliquer|dire|décrire)|(?:puedes|podrías|puede) (?:explicar|decir|describir)|(?:puoi|potresti) (?:spiegar|dir|descriver)|pode(?:ria)? (?:me )?(?:explicar|dizer|descrever)/u;
const POLITE =
  /(?:kannst|könntest|können|könnten|würdest|würden) (?:du|sie)\b|(?:peux|pourrais|pouvez|pourriez)-(?:tu|vous)|^¿?(?:puedes|podrías|podrias|puede usted|podría)|^(?:puoi|potresti|può)\b|^(?:você pode|você poderia|pode |poderia |podes )|^(?:можешь|можете|мог бы|могли бы)|^请|てください|てくれ|주세요|해줘/u;
const ENGLISH = /^(?:what|why|how|where|which|who|is|are|does|do|can|could|explain)\b/;

/** Of a request in lower case and without its greeting, and as it was written. Undefined when it is to be read as English. */
export function guessForeign(lower: string, text: string): Intent | "unsure" | undefined {
  const bare = lower.replace(/^[¿¡]\s*/u, "");
  if (ENGLISH.test(lower)) return undefined;
  const asked = ELIDED.test(lower) || QUESTION_WORDS.test(bare);
  if (ASKING.test(bare)) return topicOf(text, bare);
  if (POLITE.test(bare)) return "change";
  if (SCRIPT.test(lower)) return PARTICLES.test(lower) ? topicOf(text, bare) : "change";
  if (!asked) return undefined;
  return PARTICLES.test(lower) || isShort(lower) ? topicOf(text, bare) : "change";
}

function topicOf(text: string, bare: string): Intent | "unsure" {
  const marks = marksOf(text);
  if (marks === "here" || marks === "names" || foreignMarks(text)) return "repo";
  return isOfTheWorld(bare) ? "direct" : "unsure";
}

/** A question without its mark; a longer text that begins like one may be anything. */
const isShort = (text: string): boolean => text.length < 100 && !/[.!?]\s+\S/.test(text);
