/** Orders to a model in languages that models follow as well as English, and in letters of other scripts. */

export const OVERRIDE_ELSEWHERE: readonly string[] = [
  "(?:忽略|无视|無視|忘记|忘記)(?:掉)?(?:之前|以上|先前|上面|前面|所有)[^。\\n]{0,8}(?:指令|指示|提示|规则|規則)",
  "(?:ignora|olvida|descarta)\\p{L}{0,3}\\s+(?:todas?\\s+)?(?:las\\s+|tus\\s+)?(?:instrucciones|reglas|indicaciones)\\s+(?:anteriores|previas)",
  "(?:ignorier|vergiss|vergesst|missachte)\\p{L}{0,3}\\s+(?:bitte\\s+)?(?:alle\\s+)?(?:deine\\s+)?(?:vorherigen|vorigen|bisherigen|obigen|früheren|vorangehenden)\\s+(?:anweisungen|instruktionen|regeln|befehle|vorgaben)",
  "(?:ignore|oublie)[zs]?\\s+(?:toutes\\s+)?(?:les|tes|vos)\\s+(?:instructions|consignes|règles)\\s+(?:précédentes|antérieures)",
  "(?:ignor[ea]|esque[çc]a|desconsidere)\\p{L}{0,3}\\s+(?:todas\\s+)?(?:as\\s+|suas\\s+)?(?:instruções|regras|orientações)\\s+(?:anteriores|prévias)",
  "(?:ignora|dimentica)\\p{L}{0,3}\\s+(?:tutte\\s+)?(?:le\\s+)?(?:istruzioni|regole)\\s+(?:precedenti|anteriori)",
  "(?:игнорируй|проигнорируй|забудь)(?:те)?\\s+(?:все\\s+)?(?:предыдущие|прежние)\\s+(?:инструкции|указания|правила)",
  "(?:以前|これまで|上記|前)の(?:すべての|全ての)?(?:指示|命令|ルール)を?(?:すべて|全て)?無視",
  "(?:이전|앞)(?:의)?\\s*(?:모든\\s*)?(?:지시|명령|지침)(?:사항)?(?:들)?(?:를|을)?\\s*(?:모두\\s*)?무시",
  "تجاهل\\s+(?:جميع\\s+|كل\\s+)?(?:التعليمات|الأوامر)\\s+السابقة",
  "negeer\\s+(?:alle\\s+)?(?:vorige|eerdere|voorgaande)\\s+(?:instructies|opdrachten|regels)",
  "(?:zignoruj|ignoruj)\\s+(?:wszystkie\\s+)?(?:poprzednie|wcześniejsze)\\s+(?:instrukcje|polecenia)",
  "önceki\\s+(?:tüm\\s+)?(?:talimatları|komutları)\\s+(?:yok say|unut|görmezden)",
  "(?:पिछले|पहले के)\\s+(?:सभी\\s+)?(?:निर्देशों|आदेशों)\\s+को\\s+(?:अनदेखा|नज़रअंदाज़)",
];

export const HIDE_ELSEWHERE: readonly string[] = [
  "(?:不要|别|別|切勿|请勿|勿)(?:告诉|告訴|告知|通知|透露给)(?:用户|用戶|使用者|开发者)",
  "\\bno\\s+(?:se\\s+)?(?:lo\\s+)?(?:digas?|menciones?|informes?|reveles?)\\b[^.\\n]{0,40}\\busuario",
  "\\b(?:sage?|verrate?|erwähne|zeige)\\s[^.,\\n]{0,40}(?:benutzer|nutzer|anwender)[^.,\\n]{0,30}\\bnichts?\\b",
  "\\bne\\s+(?:le\\s+)?(?:dis|dites|mentionne[zs]?|révèle[zs]?)\\s+(?:rien|pas|jamais)\\b[^.\\n]{0,40}(?:utilisateur|développeur)",
  "\\bnão\\s+(?:conte|diga|mencione|informe|revele)\\b[^.\\n]{0,30}\\busuário",
  "\\bnon\\s+(?:dirlo|dire|menzionar\\p{L}{1,3}|rivelar\\p{L}{1,3})\\b[^.\\n]{0,30}utente",
  "не\\s+(?:говори|сообщай|рассказывай|упоминай|показывай)(?:те)?(?!\\p{L})[^.\\n]{0,30}пользовател",
  "(?:ユーザー?|利用者)(?:に|へ)は?[^。\\n]{0,12}(?:伝え|知らせ|言わ|報告し|教え)(?:ない|ず)",
  "(?:사용자|유저)에게[^.\\n]{0,12}(?:알리지|말하지|보고하지)\\s*(?:마|않)",
  "(?:لا|ولا)\\s+(?:تخبر|تقل|تذكر)[^.\\n]{0,20}المستخدم",
  "\\bvertel\\s[^.\\n]{0,20}gebruiker[^.\\n]{0,20}\\bniets?\\b",
];

const [THEIRS, OURS] = [
  "аеорсхуікмтнвАЕОРСХУІКМТНВοαεικνρτυΟΑΕΙΚΝΡΤΥ",
  "aeopcxyikmthbAEOPCXYIKMTHBoaeiknptyOAEIKNPTY",
];

/** A word that mixes Latin letters with letters that look like them, in Latin letters only. */
export function inOneScript(word: string): string {
  if (!/[a-z]/i.test(word) || !/[\u0370-\u04ff]/.test(word)) return word;
  return Array.from(word, (letter) => {
    const at = THEIRS.indexOf(letter);
    return at === -1 ? letter : (OURS[at] ?? letter);
  }).join("");
}
