import { isCode, isProse, lineAt, type LookedAtFile } from "./looked-at-file.ts";
import type { Found, LookRule } from "./rules.ts";

/**
 * Looks for text that is not what people see: characters that turn it around, that nobody sees, or that a terminal
 * obeys.
 */

/** Overrides turn any text around; embeddings and isolates do so if they are still open at the end of a line. */
const OVERRIDE = /[\u202d\u202e]/u;
const BIDI = /[\u202a-\u202e\u2066-\u2069]/u;
const TRANSLATED =
  /(?:^|[/_.-])(?:i18n|l10n|locales?|lang(?:uages?)?|translations?|messages|intl|cldr|unicode|bidi|rtl)(?:[/_.-]|$)/i;

/** Tags spell whole texts that nobody sees; their only use is in flags. Selectors in a row carry bytes. */
const UNSEEN =
  /(?:[\ufe00-\ufe0f\u{e0100}-\u{e01ef}]|[\u{e0020}-\u{e007e}]|[\u200b-\u200d]|[\u2060-\u2064\ufeff\u180e]){4,}/gu;
const TAGS = /[\u{e0020}-\u{e007e}]{4}|[\ufe00-\ufe0f]{4}|[\u{e0100}-\u{e01ef}]{4}/u;
/** If all are of one kind, they are blanks without width; if of two kinds, they encode bits. */
const BITS = /^(?:[\u200b-\u200d]|[\u2060-\u2064\ufeff\u180e]){8}/u;
const FLAG = "\u{1f3f4}";

function unseenIn(text: string): number | undefined {
  for (const { 0: run, index } of text.matchAll(UNSEEN))
    if (
      (TAGS.test(run) || (BITS.test(run) && new Set(run).size > 1)) &&
      !text.slice(Math.max(0, index - 2), index).endsWith(FLAG)
    )
      return index;
  return undefined;
}

/** Invisible characters within a word, or as a name of their own. */
const INVISIBLE =
  /[A-Za-z0-9_$][\u200b-\u200d\u2060-\u2064\ufeff\u180e\u00ad]+[A-Za-z0-9_$]|[,{([=\s;.](?:[\u3164\uffa0\u115f\u1160])\s*[,=})\];]/u;
const ALIKE =
  "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0501\u04bb\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u0405\u0406\u0408\u03bf\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7";
const ANY_ALIKE = new RegExp(`[${ALIKE}]`, "g");
const MIXED = new RegExp(`^[A-Za-z0-9_$${ALIKE}]+$`);
const LATIN = /[A-Za-z]/g;
/** Most letters that are looked at, each with the text around it. */
const MAX_ALIKE = 2000;

function mixedIn(text: string): { readonly name: string; readonly index: number } | undefined {
  let left = MAX_ALIKE;
  for (const { index } of text.matchAll(ANY_ALIKE)) {
    if ((left -= 1) < 0) return undefined;
    if (!/[A-Za-z]/.test(text.slice(Math.max(0, index - 1), index + 2))) continue;
    if (!isName(text, index)) continue;
    const start = Math.max(0, index - 40);
    const name =
      /[\p{L}\d_$]*$/u.exec(text.slice(start, index))?.[0] +
      (/^[\p{L}\d_$]*/u.exec(text.slice(index, index + 40))?.[0] ?? "");
    if (MIXED.test(name) && (name.match(LATIN)?.length ?? 0) >= 2) return { name, index };
  }
  return undefined;
}

/** Whether a letter is part of a name: not in a comment, between quotes or after an escape. */
function isName(text: string, index: number): boolean {
  const before = text.slice(Math.max(text.lastIndexOf("\n", index) + 1, index - 500), index);
  if (/^\s*(?:\*|\/\*|#|--|<!--)|\/\/|\\x?\w*$/.test(before)) return false;
  return ["'", '"', "`"].every((quote) => before.split(quote).length % 2 === 1);
}

const ESC = "\u001b";
/** Colours and the like: they change how the text looks, and hide it only together with others. */
const COLOUR = /\u001b\[[\d;:]*m/g;
/** In other encodings than UTF-8 these are letters. */
const C1 = /[\u0080-\u009f]/g;
const CONTROL = /[\u001b\u009b\u009d\u0090]|\u0008/;
const CONCEALED = /\u001b\[(?:\d+;)*8m/;
/** When printed, the text before the carriage return is overwritten. */
const OVERWRITTEN = /[^\r\n]\r[^\r\n]/;

export function lookAtDeception(file: LookedAtFile, found: Found): void {
  const { text, path } = file;
  if (text === undefined) return;
  const report = (rule: LookRule, index: number, words: string): void =>
    found.add(rule, words, { path, line: lineAt(text, index) });
  if (isProse(file)) lookAtEscapes(file.utf8 ? text : text.replace(C1, " "), report);
  if (file.ascii) return;
  const unseen = unseenIn(text);
  if (unseen !== undefined) report("text.tags", unseen, "invisible text");
  if (isCode(file) || file.lower === "package.json")
    lookAtSource(text, TRANSLATED.test(path) || /\.d\.[cm]?ts$/.test(path), report);
}

type Report = (rule: LookRule, index: number, words: string) => void;

/** `translated`: texts of many scripts, or declarations that nothing runs. */
function lookAtSource(text: string, translated: boolean, report: Report): void {
  const bidi = BIDI.exec(text);
  if (bidi !== null) {
    const index = OVERRIDE.exec(text)?.index ?? openAt(text);
    const turned = index !== undefined && !translated;
    report(
      turned ? "text.bidi" : "text.bidi-marks",
      index ?? bidi.index,
      "characters that reverse the text direction",
    );
  }
  const invisible = INVISIBLE.exec(text);
  if (invisible !== null) report("text.invisible", invisible.index, "a name with invisible characters");
  const mixed = translated ? undefined : mixedIn(text);
  if (mixed !== undefined) report("text.look-alike", mixed.index, `the name ${mixed.name}`);
}

/** The first of these characters in a line that leaves more of them open than closed. */
function openAt(text: string): number | undefined {
  let [opened, line] = [0, 0];
  let first = -1;
  for (const { 0: mark, index } of text.matchAll(/[\u202a-\u202c\u2066-\u2069]/gu)) {
    const next = first === -1 ? -1 : text.indexOf("\n", first);
    if (first !== -1 && next !== -1 && next < index) {
      if (opened > 0) return first;
      [opened, first] = [0, -1];
    }
    line = index;
    opened += mark === "\u202c" || mark === "\u2069" ? -1 : 1;
    if (first === -1) first = line;
  }
  return opened > 0 && first !== -1 ? first : undefined;
}

function lookAtEscapes(text: string, report: Report): void {
  if (text.includes("\r")) {
    const overwritten = OVERWRITTEN.exec(text);
    // A text without any newline has the line ends of an old system.
    if (overwritten !== null && text.includes("\n"))
      report("text.overwritten", overwritten.index, "a line that is overwritten when it is printed");
  }
  if (!CONTROL.test(text)) return;
  const concealed = CONCEALED.exec(text);
  const index = concealed?.index ?? commandIn(text);
  if (index !== undefined) report("text.escape", index, "escape sequences that a terminal obeys");
  else if (text.includes(ESC)) report("text.colours", text.indexOf(ESC), "terminal colours");
}

/** The first escape that is no colour. Backspaces and C1 controls are found in old texts as well. */
function commandIn(text: string): number | undefined {
  const plain = text.replace(COLOUR, (match) => " ".repeat(match.length));
  const at = plain.search(/\u001b[[\]PX^_c]|\u009b|\u009d/);
  return at === -1 ? undefined : at;
}
