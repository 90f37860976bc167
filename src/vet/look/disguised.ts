/**
 * Looks for contents that are not what they seem: hidden text, programs under other names, data that runs when it is
 * loaded.
 */
import {
  type Findings,
  isCode,
  isProse,
  lineAt,
  type LookedAtFile,
  type LookRule,
  REFUSED_DATA,
} from "./looked-at.ts";

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

/** Text that is not what people see: characters that turn it around, that nobody sees, or that a terminal obeys. */
export function lookAtDeception(file: LookedAtFile, found: Findings): void {
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

type Native = "ELF" | "Mach-O" | "PE" | "wasm" | "class" | "object";

const NATIVE: readonly (readonly [Native, readonly number[]])[] = [
  ["ELF", [0x7f, 0x45, 0x4c, 0x46]],
  ["Mach-O", [0xfe, 0xed, 0xfa, 0xce]],
  ["Mach-O", [0xfe, 0xed, 0xfa, 0xcf]],
  ["Mach-O", [0xce, 0xfa, 0xed, 0xfe]],
  ["Mach-O", [0xcf, 0xfa, 0xed, 0xfe]],
  ["wasm", [0, 0x61, 0x73, 0x6d]],
  ["object", [0x21, 0x3c, 0x61, 0x72, 0x63, 0x68, 0x3e, 0x0a]],
];
const FAT_OR_CLASS = [0xca, 0xfe, 0xba, 0xbe];

function nativeIn(bytes: Buffer): Native | undefined {
  const begins = (magic: readonly number[]): boolean => magic.every((byte, at) => bytes[at] === byte);
  const known = NATIVE.find(([, magic]) => begins(magic))?.[0];
  if (known !== undefined) return known;
  // A class of Java has its version there, a fat Mach-O the small number of its parts.
  if (begins(FAT_OR_CLASS) && bytes.length >= 8) return bytes.readUInt32BE(4) < 30 ? "Mach-O" : "class";
  if (bytes[0] !== 0x4d || bytes[1] !== 0x5a || bytes.length < 0x40) return undefined;
  const at = bytes.readUInt32LE(0x3c);
  return bytes.toString("latin1", at, at + 4) === "PE\0\0" ? "PE" : undefined;
}

/** Endings of files in which compiled code is expected. */
const ENDINGS =
  /^\.(?:node|so|dylib|dll|exe|pyd|a|o|obj|lib|wasm|class|ko|elf|bin|out|com|sys|mui|efi|dat|rlib|rmeta|bc|bundle|xll|ocx|cpl|tlb|ax|scr|node\w*|appimage|img|rom|mex\w*|macho|dSYM|prl)$|^\.so\.[\d.]+$|^\.\d+$/;
/** Endings of files that nobody takes for a program. */
const DATA =
  /^\.(?:png|jpe?g|gif|webp|bmp|ico|svg|tiff?|mp[34]|wav|ogg|webm|mov|avi|woff2?|ttf|otf|eot|pdf|docx?|xlsx?|pptx?|txt|md|rst|json|ya?ml|toml|xml|html?|css|csv|lock|map|log|ini|cfg|conf)$/;
const IMAGE =
  /^\.(?:png|jpe?g|gif|webp|bmp|ico|tiff?|mp[34]|wav|ogg|webm|mov|avi|woff2?|ttf|otf|eot|pdf|heic|psd)$/;
const SCRIPT =
  /^\s*(?:#!\s*\/|<\?php|@echo\s+off|import\s+\w+|from\s+\w+\s+import|\(?(?:async\s+)?function\b|const\s+\w|var\s+_?\w|'use strict'|"use strict"|\(\(?\)?\s*=>|global\b|!function)|\b(?:eval|require|child_process|exec|fromCharCode|subprocess|powershell)\s*\(/;
/** Characters at the beginning of a picture or document in which a script is looked for. */
const HEAD_LENGTH = 4096;

/** Compiled code that no system runs by itself. */
const PARTS: ReadonlySet<Native> = new Set(["class", "wasm", "object"]);
const MODE_RUNS = 0o111;

/** Compiled programs, whatever their names, and scripts that are called something else. */
export function lookAtBinary(file: LookedAtFile, found: Findings): void {
  const { path, lower, ending, mode } = file;
  const native = nativeIn(file.bytes);
  if (native === undefined) {
    lookAtDisguise(file, found);
    return;
  }
  const library = ENDINGS.test(ending) || /\.so(?:\.\d+)+$/.test(lower);
  const disguised = DATA.test(ending) || isCode(file) || isProse(file);
  if (disguised && !library) found.add("binary.disguised", `${native} named ${ending || lower}`, { path });
  else if (library || PARTS.has(native)) found.add("binary.native", native, { path });
  else if (lower.startsWith(".")) found.add("binary.hidden", `${native} in a hidden file`, { path });
  else
    found.add("binary.program", `${native}${(mode & MODE_RUNS) === 0 ? "" : ", marked as executable"}`, {
      path,
    });
}

function lookAtDisguise({ path, ending, text }: LookedAtFile, found: Findings): void {
  if (text === undefined || !IMAGE.test(ending)) return;
  const beginning = text.slice(0, HEAD_LENGTH);
  if (SCRIPT.test(beginning)) found.add("binary.lying-script", `a script named ${ending}`, { path });
}

/** Calls that start a program, run a text or touch files, by module; a star stands for all calls of a module. */
const CALLS: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  Object.entries({
    os: "system popen execv execve execl execlp execvp spawnv spawnl spawnlp posix_spawn fork remove unlink rmdir removedirs putenv startfile",
    subprocess: "*",
    _posixsubprocess: "*",
    commands: "*",
    pty: "spawn",
    builtins: "eval exec compile __import__ open execfile",
    runpy: "*",
    importlib: "import_module __import__",
    socket: "*",
    shutil: "rmtree move copy copyfile",
    webbrowser: "open",
    ctypes: "*",
    code: "*",
    timeit: "timeit repeat",
    pdb: "run runeval",
    bdb: "*",
    cProfile: "run runctx",
    profile: "run runctx",
    "asyncio.subprocess": "*",
    "multiprocessing.util": "spawnv_passfds",
    "urllib.request": "urlopen urlretrieve",
    requests: "*",
    "requests.api": "*",
    "http.client": "*",
    pip: "main",
    "pip._internal": "main",
    "distutils.spawn": "spawn",
    "setuptools.sandbox": "*",
  }).map(([module, names]) => [module, new Set(names.split(" "))]),
);
/** Other names of the same modules. */
const ALSO: Readonly<Record<string, string>> = {
  posix: "os",
  nt: "os",
  __builtin__: "builtins",
  __builtins__: "builtins",
  _socket: "socket",
};

const ENDING = /\.(?:pkl|pickle|p|pt|pth|ckpt|joblib|dill|cloudpickle|sav|npy|bin|model|data|dat|cache)$/;
const NAMED = /[ci]([\w.]{1,60})\n([\w.]{1,60})\n/g;
/** Two short texts, each perhaps memoised, then the code that looks up the second in the first. */
const STACKED = /[\x8cUT]\W?([\w.]{1,60}?)(?:\x94|q.)?[\x8cU][^]([\w.]{1,60}?)(?:\x94|q.)?\x93/g;
/** Most bytes of one file that are looked at. */
const MAX_BYTES = 8 * 2 ** 20;

/**
 * Data that Python unpickles: loading it calls what it names. Nothing of it is loaded, only its names are
 * read.
 */
export function lookAtPickle({ path, ending, bytes }: LookedAtFile, found: Findings): void {
  if (!isMarked(bytes) && !ENDING.test(ending)) return;
  const call = callIn(bytes.toString("latin1", 0, MAX_BYTES));
  if (call === undefined) return;
  found.add(REFUSED_DATA.test(path) ? "binary.pickle-tried" : "binary.pickle", `loading it calls ${call}`, {
    path,
  });
}

const isMarked = ([first, version = 0]: Buffer): boolean => first === 0x80 && version >= 2 && version <= 5;

/** The first such call among the names. Archives hold the data as it is. */
function callIn(data: string): string | undefined {
  for (const form of [NAMED, STACKED])
    for (const [, module = "", name = ""] of data.matchAll(form)) {
      const calls = CALLS.get(ALSO[module] ?? module);
      if (calls?.has("*") === true || calls?.has(name) === true) return `${module}.${name}`;
    }
  return undefined;
}
