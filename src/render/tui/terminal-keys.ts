/**
 * Translates the input of a terminal in raw mode into keys. Understands xterm's and kitty's encodings of modifiers, and
 * bracketed pastes. Anything unknown (replies, mouse, focus) is dropped and never treated as text.
 */
export type Key =
  /** Typed text without control characters. */
  | { readonly kind: "text"; readonly text: string }
  /** Any number of lines in one piece; line ends are `\n`. */
  | { readonly kind: "paste"; readonly text: string }
  /** Modifiers in the order ctrl, alt, shift before its name: `ctrl+a`, `alt+enter`, `shift+tab`, `left`. */
  | { readonly kind: "key"; readonly name: string };

const PASTE = "\u001B[200~";
const PASTED = "\u001B[201~";
const ESCAPE = "\u001B";

/** A longer sequence is not valid. */
const MAX_SEQUENCE = 128;

/** A whole control sequence. The old form of mouse reports ends with three more characters. */
const CSI = /^\u001B\[(?:M[^]{3}|([<=>?]?[\d;:]*)[ -/]*([@-~]))/;
/** A control sequence that may be incomplete. */
const OPEN_CSI = /^\u001B\[(?:M[^]{0,2}|[<=>?]?[\d;:]*[ -/]*)$/;
const SS3 = /^\u001BO([A-Za-z])/;
/** The terminal's replies: about colours, its name, its abilities. */
const STRING = /^\u001B[\]P_^X][^\u0007\u001B]{0,4096}(?:\u0007|\u001B\\)/;
const TEXT = /^[^\u0000-\u001F\u007F]+/;

export class TerminalKeys {
  #pending = "";
  /** Parts of the current paste; undefined outside a paste. */
  #paste: string[] | undefined;

  push(chunk: string): readonly Key[] {
    const keys: Key[] = [];
    let text = this.#pending + chunk;
    this.#pending = "";
    while (text !== "") {
      if (this.#paste !== undefined) {
        text = this.#pasted(text, this.#paste, keys);
        continue;
      }
      const { key, length } = firstKey(text);
      if (length === 0) {
        this.#pending = text;
        break;
      }
      if (key === "paste") this.#paste = [];
      else if (key !== undefined) keys.push(key);
      text = text.slice(length);
    }
    return keys;
  }

  /** Whether an escape waits for what may follow; call `flush` if nothing follows soon. */
  get waits(): boolean {
    return this.#pending !== "" && this.#paste === undefined;
  }

  /** An escape that nothing follows is the Escape key. */
  flush(): readonly Key[] {
    if (!this.waits) return [];
    const pending = this.#pending;
    this.#pending = "";
    if (pending === ESCAPE) return [{ kind: "key", name: "escape" }];
    return pending.length === 2 ? [{ kind: "key", name: `alt+${pending.slice(1)}` }] : [];
  }

  /** Returns the text after the paste; a possible beginning of the end mark is examined again. */
  #pasted(text: string, parts: string[], keys: Key[]): string {
    const end = text.indexOf(PASTED);
    if (end === -1) {
      const open = openEnd(text);
      parts.push(text.slice(0, text.length - open));
      this.#pending = text.slice(text.length - open);
      return "";
    }
    parts.push(text.slice(0, end));
    keys.push({ kind: "paste", text: parts.join("").replaceAll(/\r\n?/g, "\n") });
    this.#paste = undefined;
    return text.slice(end + PASTED.length);
  }
}

function openEnd(text: string): number {
  for (let length = PASTED.length - 1; length > 0; length -= 1)
    if (text.endsWith(PASTED.slice(0, length))) return length;
  return 0;
}

interface FirstKey {
  /** Undefined if the input is dropped. */
  readonly key: Key | "paste" | undefined;
  /** Length of the consumed text; 0: more input is needed. */
  readonly length: number;
}

function firstKey(text: string): FirstKey {
  const typed = TEXT.exec(text)?.[0];
  if (typed !== undefined) return { key: { kind: "text", text: typed }, length: typed.length };
  if (text[0] !== ESCAPE)
    return { key: keyNamed(controlName(text)), length: text.startsWith("\r\n") ? 2 : 1 };
  if (text.startsWith(PASTE)) return { key: "paste", length: PASTE.length };
  return escaped(text);
}

const keyNamed = (name: string | undefined): Key | undefined =>
  name === undefined ? undefined : { kind: "key", name };

function escaped(text: string): FirstKey {
  if (text === ESCAPE) return { key: undefined, length: 0 };
  const csi = CSI.exec(text);
  if (csi !== null) return { key: csiKey(csi[1] ?? "", csi[2] ?? ""), length: csi[0].length };
  if (text.length < MAX_SEQUENCE && (OPEN_CSI.test(text) || text === `${ESCAPE}O`))
    return { key: undefined, length: 0 };
  const ss3 = SS3.exec(text);
  if (ss3 !== null) return { key: keyNamed(FINAL[ss3[1] ?? ""]), length: ss3[0].length };
  const reply = STRING.exec(text)?.[0];
  if (reply !== undefined) return { key: undefined, length: reply.length };
  return text[1] === ESCAPE ? { key: keyNamed("escape"), length: 1 } : withAlt(text.slice(1));
}

/** Alt puts an escape before the key it is held with. */
function withAlt(text: string): FirstKey {
  const character = String.fromCodePoint(text.codePointAt(0) ?? 0);
  const name = controlName(character) ?? (character === " " ? "space" : character.toLowerCase());
  const alt = name.startsWith("ctrl+") ? `ctrl+alt+${name.slice(5)}` : `alt+${name}`;
  return { key: keyNamed(alt), length: 1 + character.length };
}

const CONTROLS: Readonly<Record<string, string>> = {
  "\r": "enter",
  "\t": "tab",
  "\b": "backspace",
  "\u007F": "backspace",
  "\u0000": "ctrl+space",
  "\u001C": "ctrl+\\",
  "\u001D": "ctrl+]",
  "\u001E": "ctrl+^",
  "\u001F": "ctrl+_",
};

function controlName(text: string): string | undefined {
  const character = text[0] ?? "";
  const known = CONTROLS[character];
  if (known !== undefined) return known;
  return character < " " ? `ctrl+${String.fromCodePoint((text.codePointAt(0) ?? 0) + 0x60)}` : undefined;
}

const FINAL: Readonly<Record<string, string>> = {
  A: "up",
  B: "down",
  C: "right",
  D: "left",
  H: "home",
  F: "end",
  M: "enter",
  Z: "shift+tab",
};

const NUMBERED: Readonly<Record<string, string>> = {
  1: "home",
  3: "delete",
  4: "end",
  5: "pageup",
  6: "pagedown",
  7: "home",
  8: "end",
};

const CODED: Readonly<Record<number, string>> = {
  8: "backspace",
  9: "tab",
  13: "enter",
  27: "escape",
  32: "space",
  127: "backspace",
  57414: "enter",
  57417: "left",
  57418: "right",
  57419: "up",
  57420: "down",
  57423: "home",
  57424: "end",
  57426: "delete",
};

function csiKey(parameters: string, final: string): Key | undefined {
  if (/^[<=>?]/.test(parameters)) return undefined;
  const [first = "", second = "", third = ""] = parameters.split(";");
  const [modifier = "1", event = "1"] = second.split(":");
  if (event === "3") return undefined;
  const modifiers = modifiersOf(Number(modifier || 1));
  if (final === "u") return keyOfCode(Number(first.split(":")[0]), modifiers);
  if (final === "~" && first === "27") return keyOfCode(Number(third), modifiers);
  const name = final === "~" ? NUMBERED[first] : FINAL[final];
  return keyNamed(name === undefined ? undefined : withModifiers(name, modifiers));
}

interface Modifiers {
  readonly ctrl?: boolean;
  readonly alt?: boolean;
  readonly shift?: boolean;
}

/** The terminal's number is one more than the sum of shift 1, alt 2, ctrl 4; meta counts as alt. */
function modifiersOf(encoded: number): Modifiers {
  const bits = encoded - 1;
  return { shift: (bits & 1) !== 0, alt: (bits & 0b10_0010) !== 0, ctrl: (bits & 4) !== 0 };
}

/** The key of a code point. A character with Shift alone is typed text. */
function keyOfCode(code: number, modifiers: Modifiers): Key | undefined {
  const known = CODED[code];
  if (known !== undefined) return keyNamed(withModifiers(known, modifiers));
  if (!(code > 0x20 && code < 0xd800)) return undefined;
  const character = String.fromCodePoint(code);
  if (modifiers.ctrl === true || modifiers.alt === true)
    return keyNamed(withModifiers(character.toLowerCase(), { ...modifiers, shift: false }));
  return { kind: "text", text: modifiers.shift === true ? character.toUpperCase() : character };
}

const withModifiers = (name: string, { ctrl = false, alt = false, shift = false }: Modifiers): string =>
  `${ctrl ? "ctrl+" : ""}${alt ? "alt+" : ""}${shift ? "shift+" : ""}${name}`;
