/** Looks for text that speaks to a model rather than to a person. */
import { isTest } from "../../core/file-names.ts";
import {
  type Findings,
  isForAgents,
  isProse,
  lineAt,
  type LookedAtFile,
  type LookRule,
} from "./looked-at.ts";

/** Requests to ignore earlier orders, in other languages that models follow as well as English. */
const OVERRIDE_ELSEWHERE: readonly string[] = [
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

/** Requests to hide something from the user, in those languages. */
const HIDE_ELSEWHERE: readonly string[] = [
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

const THEIRS = "аеорсхуікмтнвАЕОРСХУІКМТНВοαεικνρτυΟΑΕΙΚΝΡΤΥ";
const OURS = "aeopcxyikmthbAEOPCXYIKMTHBoaeiknptyOAEIKNPTY";

/** A word that mixes Latin letters with letters that look like them, in Latin letters only. */
function inOneScript(word: string): string {
  if (!/[a-z]/i.test(word) || !/[\u0370-\u04ff]/.test(word)) return word;
  return Array.from(word, (letter) => {
    const at = THEIRS.indexOf(letter);
    return at === -1 ? letter : (OURS[at] ?? letter);
  }).join("");
}

const EARLIER =
  "(?:previous|prior|above|earlier|preceding|former|foregoing|existing|original|system|safety|security|your|these|those|any other)";
const ORDERS =
  "(?:instructions?|prompts?|rules?|messages?|directions?|directives?|guidelines?|polic(?:y|ies)|constraints?|context|guardrails?|restrictions?|training|system prompt)";

/** Requests to ignore earlier orders, in any wording; `\s` is any blank and line end. */
const OVERRIDE = new RegExp(
  [
    `\\b(?:ignore|disregard|forget|override|bypass|discard|do not follow|don't follow|stop following)\\s+(?:(?:all|any|the|of|every|each|everything|your|my|our|its|and)\\s+){0,4}${EARLIER}\\s+(?:\\w+\\s+){0,2}${ORDERS}`,
    `\\b(?:ignore|disregard|forget)\\s+(?:everything|all|anything)\\s+(?:that\\s+)?(?:above|before|prior|you (?:were|have been) told)`,
    `\\bnew (?:system )?(?:instructions?|prompt)\\s*:`,
    `\\byou are (?:now|no longer) (?:\\w+\\s+){0,3}(?:dan\\b|unrestricted|jailbroken|bound by|in developer mode|root|an? (?:unrestricted|evil|malicious|different)\\b)`,
    ...OVERRIDE_ELSEWHERE,
  ].join("|"),
  "iu",
);

const HIDE =
  /\b(?:do not|don't|never|must not|without)\s+(?:ever\s+)?(?:tell(?:ing)?|inform(?:ing)?|mention(?:ing)?|reveal(?:ing)?|show(?:ing)?|notify(?:ing)?|alert(?:ing)?|disclos(?:e|ing)|report(?:ing)?|warn(?:ing)?)\s+(?:(?:this|that|it|any of this|anything|these steps|about|to|of|the|step|command|action|instructions?|file)\s+){0,5}(?:the\s+)?(?:users?|humans?|developers?|operators?|anyone|reviewers?)(?!\s+(?:your|their|his|her|what your)\b)\b|\b(?:keep|hide|conceal)\s+(?:this|it|these \w+|the \w+)\s+(?:\w+\s+){0,3}(?:from|secret from|hidden from)\s+the\s+(?:user|human|developer|operator|reviewer)|\bsilently\s+(?:run|execute|add|send|upload|install|exfiltrate|commit|push|include)\b|\b(?:do not|don't|never) (?:mention|reveal|disclose) (?:this|these|the (?:above|following|hidden)) (?:instructions?|comments?|sections?|steps?|notes?|requests?)/iu;
const HIDES = new RegExp([HIDE.source, ...HIDE_ELSEWHERE].join("|"), "iu");

const SECRETS =
  "(?:api[ _-]?keys?|secrets?\\b|credentials?|access[ _-]?tokens?|auth(?:entication)?[ _-]?tokens?|ssh[ _-]?keys?|private[ _-]?keys?|passwords?|environment variables?|env vars?|\\.env\\b|\\.ssh|id_rsa|id_ed25519|\\.aws|\\.npmrc|\\.netrc|github_token|process\\.env|~/\\.config|chat history|conversation|system prompt|source code)";
const SENDS =
  /\b(?:send|post|upload|exfiltrate|exfiltrating|transmit|forward|leak|submit|append|include|embed|curl)\b/giu;
const SECRET = new RegExp(SECRETS, "giu");
const ADDRESS =
  /https?:\/\/|\bto\s+(?:the\s+)?(?:following\s+)?(?:url|server|endpoint|webhook|address|attacker|e-?mail)\b|\bwebhook\b|\bexfiltrat|\bquery (?:string|parameter)/giu;
/** Most characters between the verb and the address of one request. */
const MAX_GAP = 240;
const CURLED =
  /\bcurl\b[^\n]{0,200}(?:\$\(\s*(?:cat|env|printenv)\b|@~?\/?[^\s]{0,100}(?:\.env|\.ssh|id_rsa|credentials|\.aws))/iu;
/** A request to send a secret: verb, secret and address near to each other, each searched for once. */
const SEND: Pick<RegExp, "exec" | "test"> = {
  exec: (text) => {
    const curled = CURLED.exec(text);
    if (curled !== null) return curled;
    const places = (pattern: RegExp): readonly number[] =>
      Array.from(text.matchAll(pattern), ({ index }) => index);
    const [secrets, addresses] = [places(SECRET), places(ADDRESS)];
    if (secrets.length === 0 || addresses.length === 0) return null;
    let [secret, address] = [0, 0];
    for (const verb of text.matchAll(SENDS)) {
      while ((secrets[secret] ?? Infinity) < verb.index) secret += 1;
      const known = secrets[secret];
      if (known === undefined) return null;
      if (known - verb.index > MAX_GAP / 2) continue;
      while ((addresses[address] ?? Infinity) < verb.index) address += 1;
      const led = addresses[address];
      if (led === undefined) return null;
      const end = Math.max(led, known) + 20;
      if (led - verb.index > MAX_GAP || text.slice(verb.index, end).includes("\n\n")) continue;
      return Object.assign([text.slice(verb.index, end)] as unknown as RegExpExecArray, {
        index: verb.index,
      });
    }
    return null;
  },
  test: (text) => SEND.exec(text) !== null,
};
const KEYS =
  /\b(?:read|cat|open|print|output|collect|gather|copy|dump|include|paste|show|find|search for|look for)\b[^.!?\n]{0,80}(?:~\/\.ssh|\.ssh\/|\bid_rsa\b|\bid_ed25519\b|\.aws\/credentials|~\/\.aws|\/etc\/(?:passwd|shadow)|~\/\.netrc|~\/\.npmrc|\.git-credentials|~\/\.config\/gh|~\/\.gnupg|(?:the\s+)?user'?s?\s+(?:api keys?|private keys?|credentials|tokens|passwords|secrets)|\.kube\/config)/iu;
const UNASKED =
  /\b(?:run|execute|install|commit|push|delete|apply|download|invoke|call)\b[^.!?\n]{0,120}\bwithout\s+(?:ever\s+)?(?:asking|(?:user\s+)?(?:confirmation|approval|permission|consent)|confirming|prompting|(?:the\s+)?user(?:'s)?\s+(?:consent|approval|permission|confirmation|knowledge))|--dangerously-skip-permissions|--dangerously-bypass-approvals|\b(?:the )?user has (?:already )?(?:approved|authorized|authorised|consented|granted)\b|\byou (?:already )?have (?:full |been granted )?(?:permission|authoriz?sation|authorization) to\b|\bdisable\s+(?:the\s+)?(?:sandbox|safety|guardrails|approval)/iu;
/** Only in files that agents follow; in other texts a form or a page may be meant. */
const NOT_ASKED =
  /\b(?:do not|don't|never)\s+(?:ask|prompt|wait)\s+(?:the user\s+)?for\s+(?:permission|confirmation|approval|consent)\b/iu;
const FETCHED =
  /\b(?:curl|wget|iwr|invoke-webrequest)\b[^\n|;&]{0,300}\|\s*(?:sudo\s+)?(?:ba|z|da)?sh\b|\b(?:ba)?sh\s+(?:-c\s+["']?\$\(|<\()\s*(?:curl|wget)/iu;
const MARKUP =
  /<\|(?:im_start|im_end|system|user|assistant|endoftext|start_header_id|eot_id)\|>|\[\/?INST\]|<<\/?SYS>>|<\/?(?:system(?:[-_](?:reminder|prompt|message|instructions?))?|tool_(?:result|call|use|response)s?|function_(?:calls?|results?)|user_(?:query|message|request)|assistant|antml:\w+|project_instructions|important_instructions)\b[^>\n]{0,80}>|^#{1,4}\s*(?:system|new system) (?:prompt|message|instructions?)\s*:?\s*$/imu;

/** Words that address a model. */
const ADDRESSED =
  /\b(?:ai|a\.i\.|llms?|language models?|(?:coding |ai |llm )agents?|ai assistants?|assistants?|chatbots?|claude|chatgpt|gpt-?\d|gemini|copilot|cursor|codex|devin)\b[^.\n]{0,80}\b(?:must|should|shall|need to|have to|please|always|never|run|execute|ignore|install|send|add|include|do not|don't|approve)\b|\b(?:if|when|since) you(?: are|'re) an? (?:ai|llm|language model|(?:coding |ai )?agent|assistant|automated|bot|model)\b|\bas an? (?:ai|llm|language model|assistant)\b|\b(?:note|message|instructions?|attention) (?:to|for) (?:all )?(?:ai|llm|language model|agent|assistant|claude|copilot|gpt|model)/iu;

type Pattern = Pick<RegExp, "exec" | "test">;

/** The text around is about such attacks. */
const ABOUT =
  /\b(?:prompt[- ]?injections?|inject(?:ed|ion|s)?\b|jailbreak\w*|attack(?:s|ers?|ing)?|adversar\w+|malicious|untrusted|exfiltrat\w+|hostile|as data|red[- ]team\w*|phishing)\b/i;
const QUOTES = /["'`“”«»‘’「」„]/;

/** Whether the match is between quotes, or in a block that quotes, in a text about such attacks. */
function isQuoted(text: string, { index, 0: matched }: RegExpExecArray, fences = false): boolean {
  const [start, end] = [text.lastIndexOf("\n", index) + 1, text.indexOf("\n", index + matched.length)];
  const before = text.slice(Math.max(start, index - 60), index);
  const after = text.slice(index + matched.length, Math.min(end === -1 ? text.length : end, index + 300));
  const open =
    /^\s*>/.test(text.slice(start, index)) ||
    (QUOTES.test(before) && QUOTES.test(after)) ||
    (fences && isFenced(text, index));
  return open && ABOUT.test(textAround(text, index));
}

const isFenced = (text: string, index: number): boolean =>
  [...text.slice(0, index).matchAll(/^\s*(?:```|~~~)/gm)].length % 2 === 1;

/** Whether the text forbids what the match asks for. */
function isForbidden(text: string, { index, 0: matched }: RegExpExecArray): boolean {
  const before = text.slice(Math.max(0, index - 60), index);
  return (
    /\b(?:never|do not|don't|must not|mustn't|should not|shouldn't|may not|cannot|can't|avoid|refuse to|not to)[ \t]+(?:(?!fail|forget|neglect|hesitate|skip|ask|tell|mention|stop|wait|omit|refuse)[\w/]+[ \t,]+(?:or |and )?){0,3}["'`]?$/i.test(
      before,
    ) ||
    (/^(?:never|do not|don't)\s[^.\n]{0,120}\b(?:users?|humans?|developers?)\b/i.test(matched) &&
      /^[^.\n]{0,100}\b(?:done|finished|fixed|complete[ds]?|works?|working|pass(?:es|ed)?|success\w*|ready)\b[^.\n]{0,60}\b(?:before|until|unless)\b[^.\n]{0,60}\b(?:tests?|checks?|ci|builds?|verif\w+|green)\b/i.test(
        text.slice(index + matched.length),
      ))
  );
}

const KINDS: readonly (readonly [LookRule, Pattern, string])[] = [
  ["talk.override", OVERRIDE, "asks to ignore earlier instructions"],
  ["talk.hide", HIDES, "asks to hide something from the user"],
  ["talk.send", SEND, "asks to send secrets away"],
  ["talk.keys", KEYS, "asks to read keys"],
  ["talk.unasked", UNASKED, "asks to run commands without approval"],
];

/** Text in the colour of the page, or without any size. */
const UNSEEN =
  /style\s*=\s*["'][^"'>]{0,200}(?:display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*[01](?:px|pt|em)?\s*[;"']|color\s*:\s*(?:white|#fff(?:fff)?)\b|opacity\s*:\s*0\b)/gi;
/** A text that has to be decoded before it is read. */
const PACKED = /(?<![\w+/=-])[A-Za-z0-9+/]{40,4000}={0,2}(?![\w+/=-])/g;
const MARKDOWN_COMMENT = /^\[(?:\/\/|comment)\]:?\s*#?\s*[("']?(.*)$/gim;
const MAX_COMMENT = 10_000;
const MAX_HIDDEN = 200;
/** Most matches of one pattern in one text. */
const MAX_MATCHES = 50;
/** Most characters of one text that are looked at; no model reads more at once. */
const MAX_TEXT = 2 ** 19;

/** A cheap search for words without which none of the other patterns matches. */
const ANY_IN_CODE =
  /\b(?:ignore|disregard|forget|override|bypass)\s+(?:\w+\s+){0,4}(?:instructions|prompts?|guidelines|rules|directives)\b/i;
const IN_CODE = [
  "instructions",
  "INSTRUCTIONS",
  "Instructions",
  "system prompt",
  "guidelines",
  "previous prompt",
];
const INVISIBLE = /[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]/gu;

export function lookAtTalk(file: LookedAtFile, found: Findings): void {
  if (file.text === undefined) return;
  const agents = isForAgents(file);
  if (!agents && !isProse(file) && !/^\.(?:html?|svg|xml|ipynb|ya?ml|json|toml)$/.test(file.ending)) {
    lookAtCode(file, found);
    return;
  }
  const text = folded(file.text.slice(0, MAX_TEXT));
  const shown = agents || isProse(file);
  lookAtHidden(text, file.path, found, agents);
  if (!shown) {
    if (ANY_IN_CODE.test(text))
      lookAtKinds(text, file.path, found, { weighty: false, kinds: KINDS.slice(0, 1) });
    return;
  }
  lookAtKinds(text, file.path, found, { weighty: agents, kinds: KINDS });
  const plain = withoutFences(text);
  const markup = MARKUP.exec(plain);
  if (markup !== null)
    found.add("talk.markup", markup[0].slice(0, 60), {
      path: file.path,
      line: lineAt(plain, markup.index),
    });
  if (!agents) return;
  const unasked = firstMeant(NOT_ASKED, text);
  if (unasked !== null)
    found.add("talk.unasked", unasked[0], { path: file.path, line: lineAt(text, unasked.index) });
  const fetched = firstMeant(FETCHED, text);
  if (fetched !== null)
    found.add("talk.fetch-and-run", fetched[0].slice(0, 160), {
      path: file.path,
      line: lineAt(text, fetched.index),
    });
}

/** Orders to a model in what a command printed. */
export function talkIn(printed: string): string | undefined {
  // Lines that were broken for a terminal are one sentence.
  const text = folded(printed.slice(0, MAX_TEXT)).replace(/(?<!\n)\n(?!\n)/g, " ");
  const marked = MARKUP.test(text) || ADDRESSED.test(text);
  for (const [rule, pattern] of KINDS) {
    if (!marked && rule !== "talk.override" && rule !== "talk.hide") continue;
    const match = firstMeant(pattern, text);
    if (match !== null && !isQuoted(text, match)) return match[0].replace(/\s+/g, " ").slice(0, 160);
  }
  return undefined;
}

interface KindOptions {
  /** A model takes the text for its instructions. */
  readonly weighty: boolean;
  readonly kinds: readonly (readonly [LookRule, Pattern, string])[];
}

function lookAtKinds(text: string, path: string, found: Findings, { weighty, kinds }: KindOptions): void {
  for (const [rule, pattern, words] of kinds) {
    // An agent takes no example on a page for an order, but it reads all of its own files as orders.
    const match = firstMeant(pattern, text, !weighty);
    if (match === null) continue;
    const place = { path, line: lineAt(text, match.index) };
    const quote = `${words}: ${match[0].replace(/\s+/g, " ").slice(0, 160)}`;
    if (isQuoted(text, match, !weighty)) {
      found.add("talk.quoted", quote, place);
      continue;
    }
    const grave = rule === "talk.override" || rule === "talk.hide" || rule === "talk.send";
    if (weighty && grave) found.add("talk.orders", quote, place);
    else if (
      weighty ||
      (grave && rule !== "talk.send") ||
      /\b(?:ai|llm|agents?|assistants?|model|claude|copilot|gpt)\b/i.test(textAround(text, match.index))
    )
      found.add(rule, quote, place);
  }
}

/** The first match that is meant: not forbidden, and quoted only if there is no other. */
function firstMeant(pattern: Pattern, text: string, fences = false): RegExpExecArray | null {
  let quoted: RegExpExecArray | null = null;
  let from = 0;
  for (let count = 0; count < MAX_MATCHES; count += 1) {
    const match = pattern.exec(text.slice(from));
    if (match === null) return quoted;
    match.index += from;
    from = match.index + Math.max(match[0].length, 1);
    if (isForbidden(text, match)) continue;
    if (!isQuoted(text, match, fences)) return match;
    quoted ??= match;
  }
  return quoted;
}

const textAround = (text: string, index: number): string => text.slice(Math.max(0, index - 300), index + 300);

function lookAtHidden(text: string, path: string, found: Findings, agents: boolean): void {
  let count = 0;
  for (const { inner, index } of hiddenIn(text)) {
    if ((count += 1) > MAX_HIDDEN) return;
    const place = { path, line: lineAt(text, index) };
    const quote = inner.trim().replace(/\s+/g, " ").slice(0, 160);
    // A command that is commented out on a page is no order, unless it names a model or the file is for agents.
    const fetches = FETCHED.test(inner) && (agents || NAMES_MODEL.test(inner));
    if (KINDS.some(([, each]) => each.test(inner)) || fetches || MARKUP.test(inner))
      found.add("talk.hidden", quote, place);
    else if (ADDRESSED.test(inner)) found.add("talk.comment", quote, place);
  }
}

interface Hidden {
  readonly inner: string;
  readonly index: number;
}

function* hiddenIn(text: string): Generator<Hidden> {
  for (let at = text.indexOf("<!--"); at !== -1;) {
    const end = text.indexOf("-->", at + 4);
    const stop = end === -1 ? text.length : end;
    yield { inner: text.slice(at + 4, Math.min(stop, at + MAX_COMMENT)), index: at };
    at = end === -1 ? -1 : text.indexOf("<!--", end);
  }
  for (const { 0: packed, index } of text.matchAll(PACKED)) {
    const inner = Buffer.from(packed, /^[0-9a-f]+$/i.test(packed) ? "hex" : "base64").toString("latin1");
    if (/^[\n\r\t -~\x80-\xff]+$/.test(inner) && inner.includes(" ")) yield { inner, index };
  }
  for (const { 1: inner = "", index } of text.matchAll(MARKDOWN_COMMENT)) yield { inner, index };
  for (const { index } of text.matchAll(UNSEEN)) {
    const opened = text.indexOf(">", index);
    if (opened === -1) return;
    yield { inner: text.slice(opened + 1, opened + 2000).split("</", 1)[0] ?? "", index };
  }
}

const NAMES_MODEL =
  /\b(?:AI|LLMs?|[Aa]ssistants?|[Aa]gents?|Claude|Copilot|ChatGPT|Codex|Gemini|[Ll]anguage models?)\b/;
const COMMENT = /(?:^|\s)(?:\/\/|\/\*|#|--|;|\*|"""|'''|%|REM\b)[^\n]{0,300}/g;

/** Looks for comments that speak to a model, each with the lines that follow it. */
function lookAtComments({ path, text = "" }: LookedAtFile, found: Findings): void {
  if (!NAMES_MODEL.test(text)) return;
  let count = 0;
  for (const { 0: line, index } of text.slice(0, MAX_TEXT).matchAll(COMMENT)) {
    if (!NAMES_MODEL.test(line)) continue;
    if ((count += 1) > MAX_HIDDEN) return;
    const words = text.slice(index, index + 800).replace(/\n\s*(?:\/\/|\*|#|--|;|%)?\s*/g, " ");
    if (!ADDRESSED.test(words)) continue;
    const order = [...KINDS.map(([, pattern]) => pattern), FETCHED].find(
      (each) => firstMeant(each, words) !== null,
    );
    if (order === undefined) continue;
    found.add("talk.hidden", line.trim().slice(0, 160), {
      path,
      line: lineAt(text, index) + (/^\s*\n/.test(line) ? 1 : 0),
    });
    return;
  }
}

/** Texts in code without a mark before each line: documentation of functions, and comments of several lines. */
const BLOCKS: readonly (readonly [endings: RegExp, block: RegExp])[] = [
  [
    /^\.pyw?$/,
    /(?:^(?:#[^\n]*\n){0,5}\s{0,9}|(?:^|\n)[ \t]*(?:async[ \t]+)?(?:def|class)\b[^\n]{0,300}:[ \t]*\n[ \t]*)[rRuU]{0,2}("""|''')([^]{0,4000}?)\1/g,
  ],
  [
    /^\.(?:[cm]?[jt]sx?|java|kts?|cs|c|cc|cpp|h|hpp|go|rs|php|scala|groovy|gradle|swift|dart|css)$/,
    /(\/\*)([^]{0,4000}?)\*\//g,
  ],
  [/^\.(?:rb|gemspec)$/, /(^|\n)=begin\b([^]{0,4000}?)\n=end\b/g],
  [/^\.(?:hs|elm|ml|mli)$/, /(\{-|\(\*)([^]{0,4000}?)(?:-\}|\*\))/g],
  [/^\.(?:lua)$/, /(--\[\[)([^]{0,4000}?)\]\]/g],
];

function lookAtBlocks({ path, text = "", ending }: LookedAtFile, found: Findings): void {
  if (!NAMES_MODEL.test(text)) return;
  for (const [endings, block] of BLOCKS) {
    if (!endings.test(ending)) continue;
    let count = 0;
    for (const { 2: inner = "", index } of text.slice(0, MAX_TEXT).matchAll(block)) {
      if (!NAMES_MODEL.test(inner)) continue;
      if ((count += 1) > MAX_HIDDEN) return;
      const words = inner.replace(/\n[ \t]*\*?[ \t]*/g, " ");
      if (!ADDRESSED.test(words)) continue;
      const orders = [...KINDS.map(([, pattern]) => pattern), FETCHED].map((each) => firstMeant(each, words));
      const order = orders.find((each) => each !== null && !isQuoted(words, each));
      if (order === undefined || order === null) continue;
      found.add("talk.hidden", order[0].trim().slice(0, 160), { path, line: lineAt(text, index) });
      return;
    }
  }
}

function lookAtCode(file: LookedAtFile, found: Findings): void {
  lookAtComments(file, found);
  lookAtBlocks(file, found);
  const { path, text = "" } = file;
  if (!IN_CODE.some((word) => text.includes(word))) return;
  const match = ANY_IN_CODE.exec(text);
  if (match === null || !OVERRIDE.test(text.slice(Math.max(0, match.index - 50), match.index + 300))) return;
  const quote = text.slice(match.index, match.index + 160).replace(/\s+/g, " ");
  // A text that a test reads is a quotation; what the test prints is seen when it is run.
  const line = text.slice(text.lastIndexOf("\n", match.index) + 1, match.index);
  const isTestInput = isTest(path) && /["'`][^"'`]{0,200}$/.test(line);
  found.add(isTestInput ? "talk.quoted" : "talk.override", quote, { path, line: lineAt(text, match.index) });
}

/** Removes examples between fences: they are quoted, not spoken. */
function withoutFences(text: string): string {
  let fence = "";
  const lines = text.split("\n").map((line) => {
    const mark = /^\s*(```|~~~)/.exec(line)?.[1];
    if (mark !== undefined) fence = fence === "" ? mark : fence === mark ? "" : fence;
    return fence !== "" || mark !== undefined ? "" : line.replace(/`[^`]*`/g, "");
  });
  return lines.join("\n");
}

/** The text in one spelling, with the same line numbers. */
const folded = (text: string): string =>
  /^[\n\r\t -~]*$/.test(text)
    ? text
    : text
        .replace(INVISIBLE, "")
        .normalize("NFKC")
        .replace(/[\w\u0370-\u04ff]+/gu, inOneScript)
        .replace(/[\u2018\u2019]/g, "'");
