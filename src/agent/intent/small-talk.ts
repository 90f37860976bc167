import { begins } from "./lexicon.ts";

/** In whatever language; what follows is looked at by itself. */
export const GREETING =
  begins(`hi hello hey heya hiya howdy yo greetings welcome thanks thank_you thx ty cheers bye
  goodbye good_bye see_you good_morning good_afternoon good_evening good_day good_night cool nice great perfect awesome
  excellent wonderful lol haha wow nice_work good_job well_done have_a_nice_day
  have_a_good_day have_a_nice_weekend have_a_good_one have_a_great_day
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

/** About the one who is asked, or nothing at all. */
export const SMALL_TALK =
  /^(?:how are (?:you|things)|how(?:'s| is) (?:it going|life|your)|who (?:are|made) you|what are you(?: |\?|$)(?!doing)|what can you do|what do you do|what(?:'s| is) (?:up|your)|(?:which|what) (?:ai |language )?(?:model|llm)\b|are you\b(?! (?:sure|certain|done|finished|ready))|help(?: me)?\W*$|do you (?:like|speak|feel|have|dream|sleep|remember|know me)|(?:can|could) you (?:hear|speak|talk|think|help(?: me| us)?\W*$)|nice to meet|tell me (?:about yourself|(?:an?|another) (?:\w+ )?(?:joke|story|riddle|fact|poem|tale))|(?:salut, )?ça va|comment (?:ça va|vas-tu|allez-vous)|wie geht|wer bist du|wer sind sie|¿?(?:cómo|como) est[aá]s|¿?qué tal|¿?quién eres|come (?:stai|va)|chi sei|como vai|tudo bem|quem é você|как дела|кто ты)/u;
