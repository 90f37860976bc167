import { begins } from "./lexicon.ts";
import { marksOf } from "./project.ts";

/** In whatever language; what follows is looked at by itself. */
export const GREETING =
  begins(`hi hello hey heya hiya howdy yo greetings welcome thanks thank_you thx ty cheers bye
  goodbye good_bye see_you good_morning good_afternoon good_evening good_day good_night cool nice great perfect awesome
  excellent wonderful lol haha wow nice_work good_job well_done have_a_nice_day
  happy_new_year merry_christmas have_a_good_day have_a_nice_weekend have_a_good_one have_a_great_day
  hallo moin servus guten_morgen guten_tag guten_abend grüß_gott danke vielen_dank tschüss
  bonjour bonsoir salut coucou merci au_revoir
  hola buenos_días buenos_dias buenas_tardes buenas_noches gracias muchas_gracias adiós adios
  ciao buongiorno buonasera salve grazie olá oi bom_dia boa_tarde boa_noite obrigado obrigada muito_obrigado
  hej hoi hei bedankt dank_je merhaba selam teşekkürler cześć dzięki ahoj shalom namaste
  привет здравствуй здравствуйте доброе_утро добрый_день добрый_вечер спасибо מרחבא שלום مرحبا नमस्ते
  你好 您好 早上好 谢谢 谢谢你 こんにちは おはよう おはようございます こんばんは ありがとう ありがとうございます
  안녕 안녕하세요 감사합니다 고마워요`);

/** What may follow a greeting and says nothing more. */
export const PLEASANTRY =
  begins(`there world all everyone everybody again team folks friend buddy mate dude bot
  assistant harness later soon tomorrow so_much very_much a_lot a_million a_bunch one job work stuff you to_you too
  for_the_help for_your_help pour_ton_aide pour_votre_aide für_die_hilfe für_deine_hilfe por_tu_ayuda por_la_ayuda that_was_great that_helps that_helped that_worked beaucoup mille schön sehr muito`);

/** Before the thing itself. */
export const FILLER =
  begins(`ok okay alright right so well now then and but also just please pls kindly actually btw
  by_the_way hmm um first next finally quick_question a_question question one_more_thing another_question`);

const ABOUT_YOU =
  begins(`how_are_you how_are_things how_is_it_going how's_it_going how_is_life how's_life who_are_you
  who_made_you what_are_you what_can_you_do what_do_you_do what's_up what_is_up what's_your what_is_your which_model
  which_llm what_model what_llm nice_to_meet_you tell_me_about_yourself you_there
  ça_va comment_ça_va comment_vas-tu comment_allez-vous wie_geht wer_bist_du wer_sind_sie cómo_estás como_estas qué_tal
  que_tal quién_eres come_stai come_va chi_sei como_vai tudo_bem quem_é_você как_дела кто_ты`);
const OTHER_TALK: readonly RegExp[] = [
  /^are you\b(?! (?:able|sure|certain|done|finished|ready))/,
  /^do you (?:like|speak|feel|have|dream|sleep|remember|know me)\b/,
  /^(?:can|could) you (?:(?:hear|speak|talk|think)\b|help(?: me| us)?\W*$)/,
  /^help(?: me)?\W*$/,
  /^tell me (?:an?|another) (?:\w+ )?(?:joke|story|riddle|fact|poem|tale)\b/,
];

/** Whoever says more says something. */
const MOST_WORDS = 8;

/** About the one who is asked, or nothing at all. */
export const isSmallTalk = (text: string): boolean =>
  text.split(" ").length <= MOST_WORDS &&
  marksOf(text) === "none" &&
  (ABOUT_YOU.test(text.replace(/^¿\s*/u, "")) || OTHER_TALK.some((form) => form.test(text)));
