import { columnAt, rowBeside } from "./editor-rows.ts";
import { boundaryAfter, boundaryBefore, snapped } from "./graphemes.ts";
import { expanded, folded, inert } from "./paste-tokens.ts";
import type { Key } from "./terminal-keys.ts";

/**
 * Several lines that a person edits: a key gives another state, nothing else. Between keys the cursor stands between two
 * characters as a person counts them. A long paste is one character of the text (see `paste-tokens.ts`): it moves, is
 * cut and comes back as one, and is put in when the text is sent.
 */
export interface EditorState {
  readonly text: string;
  readonly cursor: number;
  /** Columns for a row, the cursor's included. */
  readonly width: number;
  readonly pastes: readonly string[];
  /** What was sent before, oldest first. */
  readonly history: readonly string[];
  /** The entry that is shown; the length of the history is what is being written. */
  readonly at: number;
  /** What was made of entries that were left, and of what was being written. */
  readonly left: ReadonlyMap<number, string>;
  readonly killed: string;
  /** Put aside to send something else first; the last of them comes back first. */
  readonly aside: readonly string[];
  readonly undo: readonly Moment[];
  /** What the last key did, where one of its kind goes on with it. */
  readonly last: "typed" | "killed" | "climbed" | "other";
  /** The column that Up and Down aim for. */
  readonly goal: number;
  readonly search: Search | undefined;
}

interface Moment {
  readonly text: string;
  readonly cursor: number;
}

interface Search {
  readonly query: string;
  /** The entry that holds it. */
  readonly found: number | undefined;
  /** What Escape brings back. */
  readonly before: EditorState;
}

export type Did =
  | { readonly kind: "nothing" }
  | { readonly kind: "submit"; readonly text: string }
  /** Tab; `filled` puts in what was chosen. */
  | { readonly kind: "complete" }
  /** Ctrl-D with nothing written. */
  | { readonly kind: "leave" }
  /** Ctrl-C; `empty` when there was nothing to throw away. */
  | { readonly kind: "interrupt"; readonly empty: boolean }
  | { readonly kind: "escape" }
  | { readonly kind: "redraw" }
  | { readonly kind: "suspend" };

export interface Pressed {
  readonly state: EditorState;
  readonly did: Did;
}

/** So many texts are brought back by Up. */
const MAX_HISTORY = 500;
const MAX_UNDO = 200;

export function newEditor(width: number, history: readonly string[] = []): EditorState {
  const kept = history.slice(-MAX_HISTORY);
  return {
    text: "",
    cursor: 0,
    width,
    pastes: [],
    history: kept,
    at: kept.length,
    left: new Map(),
    killed: "",
    aside: [],
    undo: [],
    last: "other",
    goal: 0,
    search: undefined,
  };
}

export const resized = (state: EditorState, width: number): EditorState => ({ ...other(state), width });

/** Replaces what stands between `from` and the cursor, or all of it. */
export const filled = (state: EditorState, from: number, text: string): EditorState =>
  edited(state, { from, to: state.cursor, by: inert(text) });

/** A text in place of what is written, folded where it is long; undo brings back what stood there. */
export function withText(state: EditorState, text: string): EditorState {
  const { text: by, pastes } = folded(text, state.pastes);
  return edited({ ...state, pastes }, { from: 0, to: state.text.length, by });
}

const NOTHING: Did = { kind: "nothing" };
const quiet = (state: EditorState): Pressed => ({ state, did: NOTHING });

export function press(state: EditorState, key: Key): Pressed {
  if (state.search !== undefined) return searching(state, state.search, key);
  if (key.kind === "text") return quiet(inserted(state, inert(key.text), "typed"));
  if (key.kind === "paste") return quiet(pasted(state, key.text));
  return KEYS.get(key.name)?.(state) ?? quiet(state);
}

const other = (state: EditorState): EditorState => ({ ...state, last: "other" });

interface Edit {
  readonly from: number;
  readonly to: number;
  readonly by: string;
  readonly last?: EditorState["last"];
}

/** Only here does a text change otherwise than by another one being shown. What is typed in a row is undone in a row. */
function edited(state: EditorState, { from, to, by, last = "other" }: Edit): EditorState {
  const text = state.text.slice(0, from) + by + state.text.slice(to);
  if (text === state.text) return { ...state, cursor: atOrBehind(text, from + by.length), last };
  const goesOn = last === "typed" && state.last === "typed";
  const moment = { text: state.text, cursor: state.cursor };
  const undo = goesOn ? state.undo : [...state.undo, moment].slice(-MAX_UNDO);
  return { ...state, text, cursor: atOrBehind(text, from + by.length), undo, last };
}

/** What was put in may have become one with what stood behind it. */
function atOrBehind(text: string, at: number): number {
  const before = snapped(text, at);
  return before === at ? at : boundaryAfter(text, at);
}

const inserted = (state: EditorState, by: string, last: EditorState["last"] = "other"): EditorState =>
  edited(state, { from: state.cursor, to: state.cursor, by, last });

function pasted(state: EditorState, paste: string): EditorState {
  const { text, pastes } = folded(paste, state.pastes);
  return inserted({ ...state, pastes }, text);
}

const moved = (state: EditorState, cursor: number): EditorState => ({ ...other(state), cursor });

/** Cuts from the cursor to there, either way; what is cut in a row comes back as one. */
function killed(state: EditorState, to: number): EditorState {
  const { cursor, text } = state;
  const isBack = to < cursor;
  const cut = isBack ? text.slice(to, cursor) : text.slice(cursor, to);
  const before = state.last === "killed" ? state.killed : "";
  const kept = isBack ? cut + before : before + cut;
  const next = edited(state, {
    from: Math.min(cursor, to),
    to: Math.max(cursor, to),
    by: "",
    last: "killed",
  });
  return { ...next, killed: cut === "" ? state.killed : kept };
}

const erased = (state: EditorState, to: number): EditorState =>
  edited(state, { from: Math.min(state.cursor, to), to: Math.max(state.cursor, to), by: "" });

const lineStart = ({ text, cursor }: EditorState): number =>
  cursor === 0 ? 0 : text.lastIndexOf("\n", cursor - 1) + 1;

function lineEnd({ text, cursor }: EditorState): number {
  const end = text.indexOf("\n", cursor);
  return end === -1 ? text.length : end;
}

/** At the end of a line the line end itself is what there is to cut. */
const cutEnd = (state: EditorState): number => {
  const end = lineEnd(state);
  return end === state.cursor ? boundaryAfter(state.text, end) : end;
};

const cutStart = (state: EditorState): number => {
  const start = lineStart(state);
  return start === state.cursor ? boundaryBefore(state.text, start) : start;
};

/** A folded paste is a word. */
const isWord = (grapheme: string): boolean => /^[\p{L}\p{N}_\u{100000}-\u{10FFFF}]/u.test(grapheme);
const isInk = (grapheme: string): boolean => !/^\s/u.test(grapheme);

function wordStart({ text, cursor }: EditorState, holds = isWord): number {
  let at = cursor;
  const back = (): number => boundaryBefore(text, at);
  while (at > 0 && !holds(text.slice(back(), at))) at = back();
  while (at > 0 && holds(text.slice(back(), at))) at = back();
  return at;
}

function wordEnd({ text, cursor }: EditorState): number {
  let at = cursor;
  const on = (): number => boundaryAfter(text, at);
  while (at < text.length && !isWord(text.slice(at, on()))) at = on();
  while (at < text.length && isWord(text.slice(at, on()))) at = on();
  return at;
}

function undone(state: EditorState): EditorState {
  const before = state.undo.at(-1);
  if (before === undefined) return other(state);
  return { ...other(state), ...before, undo: state.undo.slice(0, -1) };
}

/** A row up or down; behind the first and the last row lies the history. */
function climbed(state: EditorState, by: -1 | 1): EditorState {
  const goal = state.last === "climbed" ? state.goal : columnAt(state, state.width);
  const cursor = rowBeside(state, state.width, by, goal);
  if (cursor !== undefined) return { ...state, cursor, goal, last: "climbed" };
  return recalled(state, state.at + by) ?? moved(state, by === -1 ? 0 : state.text.length);
}

/** Another entry of the history as it was left, or what was being written. */
function recalled(state: EditorState, at: number): EditorState | undefined {
  if (at < 0 || at > state.history.length) return undefined;
  const left = new Map(state.left).set(state.at, state.text);
  const known = left.get(at);
  const { text, pastes } =
    known === undefined
      ? folded(state.history[at] ?? "", state.pastes)
      : { text: known, pastes: state.pastes };
  return { ...other(state), text, pastes, left, at, cursor: text.length, undo: [] };
}

/** A backslash at the end of a line goes on in the next. */
const GOES_ON = /(?<!\\)(?:\\\\)*\\$/;

function entered(state: EditorState): Pressed {
  const { text, cursor } = state;
  const line = text.slice(lineStart(state), cursor);
  if (cursor === lineEnd(state) && GOES_ON.test(line))
    return quiet(edited(state, { from: cursor - 1, to: cursor, by: "\n" }));
  return submitted(state);
}

function submitted(state: EditorState): Pressed {
  const text = expanded(state.text, state.pastes);
  if (text.trim() === "") return quiet(other(state));
  const { width, killed, aside } = state;
  // A token that was cut means nothing without its paste.
  const kept = { killed: expanded(killed, state.pastes), aside };
  return {
    state: { ...newEditor(width, remembered(state.history, text)), ...kept },
    did: { kind: "submit", text },
  };
}

/** What begins with a blank is not kept, and nothing twice in a row. */
function remembered(history: readonly string[], text: string): readonly string[] {
  return /^\s/.test(text) || text === history.at(-1) ? history : [...history, text];
}

function interrupted(state: EditorState): Pressed {
  const empty = state.text === "";
  const cleared = edited(state, { from: 0, to: state.text.length, by: "" });
  return {
    state: { ...cleared, at: state.history.length, left: new Map() },
    did: { kind: "interrupt", empty },
  };
}

/** What is written is put aside; where nothing is written, what was put aside comes back. */
function putAside(state: EditorState): EditorState {
  if (state.text.trim() !== "") {
    const cleared = edited(state, { from: 0, to: state.text.length, by: "" });
    const aside = [...state.aside, expanded(state.text, state.pastes)];
    return { ...cleared, aside, at: state.history.length, left: new Map() };
  }
  const back = state.aside.at(-1);
  return back === undefined ? other(state) : withText({ ...state, aside: state.aside.slice(0, -1) }, back);
}

const searchFrom = (state: EditorState): EditorState => ({
  ...other(state),
  search: { query: "", found: undefined, before: state },
});

function searching(state: EditorState, search: Search, key: Key): Pressed {
  if (key.kind === "text" || key.kind === "paste")
    return quiet(looked(state, search, search.query + inert(key.text).replaceAll("\n", " ")));
  switch (key.name) {
    case "ctrl+r":
      return quiet(looked(state, search, search.query, (search.found ?? state.history.length) - 1));
    case "ctrl+s":
      return quiet(lookedOn(state, search));
    case "backspace":
      return quiet(
        looked(state, search, search.query.slice(0, boundaryBefore(search.query, search.query.length))),
      );
    case "escape":
    case "ctrl+g":
    case "ctrl+c":
      return quiet(other(search.before));
    default: {
      const taken = { ...state, search: undefined };
      return key.name === "enter" ? quiet(taken) : press(taken, key);
    }
  }
}

/** The youngest entry that holds it, at `from` or before; what is shown stays where there is none. */
function looked(
  state: EditorState,
  search: Search,
  query: string,
  from = state.history.length - 1,
): EditorState {
  const wanted = query.toLowerCase();
  const at =
    query === ""
      ? -1
      : state.history.findLastIndex((each, place) => place <= from && each.toLowerCase().includes(wanted));
  const next = { ...search, query };
  if (at === -1) return { ...state, search: query === search.query ? search : { ...next, found: undefined } };
  const shown = recalled({ ...state, ...beforeSearch(search) }, at) ?? state;
  const cursor = snapped(shown.text, Math.max(0, shown.text.toLowerCase().indexOf(wanted)));
  return { ...shown, cursor, search: { ...next, found: at } };
}

/** The next younger one. */
function lookedOn(state: EditorState, search: Search): EditorState {
  const wanted = search.query.toLowerCase();
  const from = (search.found ?? state.history.length) + 1;
  const younger = state.history.findIndex(
    (each, at) => at >= from && wanted !== "" && each.toLowerCase().includes(wanted),
  );
  return younger === -1 ? state : looked(state, search, search.query, younger);
}

/** An entry that was only passed by in a search is not kept as one that was changed. */
const beforeSearch = ({ before }: Search) => ({ text: before.text, at: before.at, left: before.left });

type Action = (state: EditorState) => Pressed;

const plain =
  (change: (state: EditorState) => EditorState): Action =>
  (state) =>
    quiet(change(state));

const newLine = plain((state) => inserted(state, "\n"));
const toStart = plain((state) => moved(state, lineStart(state)));
const toEnd = plain((state) => moved(state, lineEnd(state)));
const left = plain((state) => moved(state, boundaryBefore(state.text, state.cursor)));
const right = plain((state) => moved(state, boundaryAfter(state.text, state.cursor)));
const wordLeft = plain((state) => moved(state, wordStart(state)));
const wordRight = plain((state) => moved(state, wordEnd(state)));
const up = plain((state) => climbed(state, -1));
const down = plain((state) => climbed(state, 1));
const backspace = plain((state) => erased(state, boundaryBefore(state.text, state.cursor)));
const erase = plain((state) => erased(state, boundaryAfter(state.text, state.cursor)));
const cutWord = plain((state) => killed(state, wordStart(state)));
const cutNextWord = plain((state) => killed(state, wordEnd(state)));
const undo = plain(undone);

const KEYS: ReadonlyMap<string, Action> = new Map<string, Action>([
  ["enter", entered],
  ["alt+enter", newLine],
  ["shift+enter", newLine],
  ["ctrl+enter", newLine],
  ["ctrl+j", newLine],
  ["space", plain((state) => inserted(state, " ", "typed"))],
  ["shift+space", plain((state) => inserted(state, " ", "typed"))],
  ["tab", (state) => ({ state: other(state), did: { kind: "complete" } })],
  ["backspace", backspace],
  ["shift+backspace", backspace],
  ["delete", erase],
  ["left", left],
  ["ctrl+b", left],
  ["right", right],
  ["ctrl+f", right],
  ["up", up],
  ["ctrl+p", up],
  ["down", down],
  ["ctrl+n", down],
  ["home", toStart],
  ["ctrl+a", toStart],
  ["end", toEnd],
  ["ctrl+e", toEnd],
  ["ctrl+home", plain((state) => moved(state, 0))],
  ["ctrl+end", plain((state) => moved(state, state.text.length))],
  ["alt+b", wordLeft],
  ["alt+left", wordLeft],
  ["ctrl+left", wordLeft],
  ["alt+f", wordRight],
  ["alt+right", wordRight],
  ["ctrl+right", wordRight],
  ["ctrl+w", plain((state) => killed(state, wordStart(state, isInk)))],
  ["alt+backspace", cutWord],
  ["ctrl+backspace", cutWord],
  ["alt+d", cutNextWord],
  ["alt+delete", cutNextWord],
  ["ctrl+delete", cutNextWord],
  ["ctrl+k", plain((state) => killed(state, cutEnd(state)))],
  ["ctrl+u", plain((state) => killed(state, cutStart(state)))],
  ["ctrl+y", plain((state) => inserted(state, state.killed))],
  ["ctrl+_", undo],
  ["ctrl+/", undo],
  ["ctrl+r", plain(searchFrom)],
  ["ctrl+s", plain(putAside)],
  ["ctrl+d", (state) => (state.text === "" ? { state: other(state), did: { kind: "leave" } } : erase(state))],
  ["ctrl+c", interrupted],
  ["ctrl+l", (state) => ({ state: other(state), did: { kind: "redraw" } })],
  ["ctrl+z", (state) => ({ state: other(state), did: { kind: "suspend" } })],
  ["escape", (state) => ({ state: other(state), did: { kind: "escape" } })],
]);
