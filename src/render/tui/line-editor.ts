import {
  boundaryAfter,
  boundaryBefore,
  columnAt,
  expanded,
  folded,
  inert,
  rowBeside,
  snapToBoundary,
} from "./text-rows.ts";
import type { Key } from "./terminal-keys.ts";

/**
 * An editor for several lines: a key turns one state into another and does nothing else. Between keys, the cursor is
 * between two graphemes. A long paste is one character of the text (see `text-rows.ts`): it is moved, cut and
 * restored as one, and expanded when the text is sent.
 */
export interface EditorState {
  readonly text: string;
  readonly cursor: number;
  /** Columns of a row, including the cursor's. */
  readonly width: number;
  readonly pastes: readonly string[];
  /** Sent texts, oldest first. */
  readonly history: readonly string[];
  /** The index of the shown entry; the length of the history means the new text. */
  readonly at: number;
  /** Edits to entries that were left, and the new text if it was left. */
  readonly left: ReadonlyMap<number, string>;
  readonly killed: string;
  /** Texts set aside in order to send something else first; the last one comes back first. */
  readonly aside: readonly string[];
  readonly undo: readonly Moment[];
  /** The kind of the last key, if another key of that kind continues its action. */
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
  /** The entry that contains the query. */
  readonly found: number | undefined;
  /** The state that Escape restores. */
  readonly before: EditorState;
}

export type KeyEffect =
  | { readonly kind: "nothing" }
  | { readonly kind: "submit"; readonly text: string }
  /** Tab; `filled` inserts the chosen completion. */
  | { readonly kind: "complete" }
  /** Ctrl-D with empty text. */
  | { readonly kind: "leave" }
  /** Ctrl-C; `empty`: there was no text to discard. */
  | { readonly kind: "interrupt"; readonly empty: boolean }
  | { readonly kind: "escape" }
  | { readonly kind: "redraw" }
  | { readonly kind: "suspend" };

export interface Pressed {
  readonly state: EditorState;
  readonly did: KeyEffect;
}

/** Most texts that Up brings back. */
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

export const resized = (state: EditorState, width: number): EditorState => ({
  ...withOtherKey(state),
  width,
});

/** Replaces the text between `from` and the cursor. */
export const replaceBeforeCursor = (state: EditorState, from: number, text: string): EditorState =>
  edited(state, { from, to: state.cursor, by: inert(text) });

/** Replaces the whole text, folded if it is long; undo restores the previous text. */
export function withText(state: EditorState, text: string): EditorState {
  const { text: by, pastes } = folded(text, state.pastes);
  return edited({ ...state, pastes }, { from: 0, to: state.text.length, by });
}

/** Puts texts in front of the text, or behind it, each on lines of its own. Folded pastes stay whole. */
export function withTexts(
  state: EditorState,
  texts: readonly string[],
  where: "before" | "behind",
): EditorState {
  const own = expanded(state.text, state.pastes);
  const all = where === "before" ? [...texts, own] : [own, ...texts];
  return withText(state, all.filter((text) => text !== "").join("\n"));
}

/** Replaces what Up brings back; the text stays. */
export function withHistory(state: EditorState, history: readonly string[]): EditorState {
  const { width, aside, text, pastes } = state;
  return withText({ ...newEditor(width, history), aside }, expanded(text, pastes));
}

const NO_EFFECT: KeyEffect = { kind: "nothing" };
const onlyState = (state: EditorState): Pressed => ({ state, did: NO_EFFECT });

export function press(state: EditorState, key: Key): Pressed {
  if (state.search !== undefined) return searching(state, state.search, key);
  if (key.kind === "text") return onlyState(inserted(state, inert(key.text), "typed"));
  if (key.kind === "paste") return onlyState(pasted(state, key.text));
  return KEYS.get(key.name)?.(state) ?? onlyState(state);
}

const withOtherKey = (state: EditorState): EditorState => ({ ...state, last: "other" });

interface Edit {
  readonly from: number;
  readonly to: number;
  readonly by: string;
  readonly last?: EditorState["last"];
}

/**
 * The only place that changes a text, except for showing another one. Characters typed in a row are undone together.
 */
function edited(state: EditorState, { from, to, by, last = "other" }: Edit): EditorState {
  const text = state.text.slice(0, from) + by + state.text.slice(to);
  if (text === state.text) return { ...state, cursor: atOrBehind(text, from + by.length), last };
  const goesOn = last === "typed" && state.last === "typed";
  const moment = { text: state.text, cursor: state.cursor };
  const undo = goesOn ? state.undo : [...state.undo, moment].slice(-MAX_UNDO);
  return { ...state, text, cursor: atOrBehind(text, from + by.length), undo, last };
}

/** The inserted text may have formed one character with the text after it. */
function atOrBehind(text: string, at: number): number {
  const before = snapToBoundary(text, at);
  return before === at ? at : boundaryAfter(text, at);
}

const inserted = (state: EditorState, by: string, last: EditorState["last"] = "other"): EditorState =>
  edited(state, { from: state.cursor, to: state.cursor, by, last });

function pasted(state: EditorState, paste: string): EditorState {
  const { text, pastes } = folded(paste, state.pastes);
  return inserted({ ...state, pastes }, text);
}

const moveCursor = (state: EditorState, cursor: number): EditorState => ({ ...withOtherKey(state), cursor });

/** Cuts from the cursor to `to`, in either direction; consecutive cuts come back as one text. */
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

const withErased = (state: EditorState, to: number): EditorState =>
  edited(state, { from: Math.min(state.cursor, to), to: Math.max(state.cursor, to), by: "" });

const lineStart = ({ text, cursor }: EditorState): number =>
  cursor === 0 ? 0 : text.lastIndexOf("\n", cursor - 1) + 1;

function lineEnd({ text, cursor }: EditorState): number {
  const end = text.indexOf("\n", cursor);
  return end === -1 ? text.length : end;
}

/** At the end of a line, the line end itself is cut. */
const cutEnd = (state: EditorState): number => {
  const end = lineEnd(state);
  return end === state.cursor ? boundaryAfter(state.text, end) : end;
};

const cutStart = (state: EditorState): number => {
  const start = lineStart(state);
  return start === state.cursor ? boundaryBefore(state.text, start) : start;
};

/** A folded paste counts as a word. */
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

function undoEdit(state: EditorState): EditorState {
  const before = state.undo.at(-1);
  if (before === undefined) return withOtherKey(state);
  return { ...withOtherKey(state), ...before, undo: state.undo.slice(0, -1) };
}

/** One row up or down; beyond the first and the last row, the history follows. */
function movedByRow(state: EditorState, by: -1 | 1): EditorState {
  const goal = state.last === "climbed" ? state.goal : columnAt(state, state.width);
  const cursor = rowBeside(state, state.width, by, goal);
  if (cursor !== undefined) return { ...state, cursor, goal, last: "climbed" };
  return recalled(state, state.at + by) ?? moveCursor(state, by === -1 ? 0 : state.text.length);
}

/** Another entry of the history, with any edits made to it, or the new text. */
function recalled(state: EditorState, at: number): EditorState | undefined {
  if (at < 0 || at > state.history.length) return undefined;
  const left = new Map(state.left).set(state.at, state.text);
  const known = left.get(at);
  const { text, pastes } =
    known === undefined
      ? folded(state.history[at] ?? "", state.pastes)
      : { text: known, pastes: state.pastes };
  return { ...withOtherKey(state), text, pastes, left, at, cursor: text.length, undo: [] };
}

/** A backslash at the end of a line continues the text on the next line. */
const GOES_ON = /(?<!\\)(?:\\\\)*\\$/;

function entered(state: EditorState): Pressed {
  const { text, cursor } = state;
  const line = text.slice(lineStart(state), cursor);
  if (cursor === lineEnd(state) && GOES_ON.test(line))
    return onlyState(edited(state, { from: cursor - 1, to: cursor, by: "\n" }));
  return submitted(state);
}

function submitted(state: EditorState): Pressed {
  const text = expanded(state.text, state.pastes);
  if (text.trim() === "") return onlyState(withOtherKey(state));
  const { width, killed, aside } = state;
  // A cut token would mean nothing without its paste.
  const kept = { killed: expanded(killed, state.pastes), aside };
  return {
    state: { ...newEditor(width, remembered(state.history, text)), ...kept },
    did: { kind: "submit", text },
  };
}

/** Texts that begin with a blank, and immediate repetitions, are not remembered. */
function remembered(history: readonly string[], text: string): readonly string[] {
  return /^\s/.test(text) || text === history.at(-1) ? history : [...history, text];
}

function clearedByInterrupt(state: EditorState): Pressed {
  const empty = state.text === "";
  const cleared = edited(state, { from: 0, to: state.text.length, by: "" });
  return {
    state: { ...cleared, at: state.history.length, left: new Map() },
    did: { kind: "interrupt", empty },
  };
}

/** Sets the text aside; if there is none, brings back the text set aside last. */
function putAside(state: EditorState): EditorState {
  if (state.text.trim() !== "") {
    const cleared = edited(state, { from: 0, to: state.text.length, by: "" });
    const aside = [...state.aside, expanded(state.text, state.pastes)];
    return { ...cleared, aside, at: state.history.length, left: new Map() };
  }
  const back = state.aside.at(-1);
  return back === undefined
    ? withOtherKey(state)
    : withText({ ...state, aside: state.aside.slice(0, -1) }, back);
}

const searchFrom = (state: EditorState): EditorState => ({
  ...withOtherKey(state),
  search: { query: "", found: undefined, before: state },
});

function searching(state: EditorState, search: Search, key: Key): Pressed {
  if (key.kind === "text" || key.kind === "paste")
    return onlyState(searchedBack(state, search, search.query + inert(key.text).replaceAll("\n", " ")));
  switch (key.name) {
    case "ctrl+r":
      return onlyState(searchedBack(state, search, search.query, (search.found ?? state.history.length) - 1));
    case "ctrl+s":
      return onlyState(searchedForward(state, search));
    case "backspace":
      return onlyState(
        searchedBack(state, search, search.query.slice(0, boundaryBefore(search.query, search.query.length))),
      );
    case "escape":
    case "ctrl+g":
    case "ctrl+c":
      return onlyState(withOtherKey(search.before));
    default: {
      const taken = { ...state, search: undefined };
      return key.name === "enter" ? onlyState(taken) : press(taken, key);
    }
  }
}

/** The newest entry that contains the query, at index `from` or older; if there is none, the shown text stays. */
function searchedBack(
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
  const cursor = snapToBoundary(shown.text, Math.max(0, shown.text.toLowerCase().indexOf(wanted)));
  return { ...shown, cursor, search: { ...next, found: at } };
}

/** Finds the next newer match. */
function searchedForward(state: EditorState, search: Search): EditorState {
  const wanted = search.query.toLowerCase();
  const from = (search.found ?? state.history.length) + 1;
  const younger = state.history.findIndex(
    (each, at) => at >= from && wanted !== "" && each.toLowerCase().includes(wanted),
  );
  return younger === -1 ? state : searchedBack(state, search, search.query, younger);
}

/** Entries passed during a search do not count as edited. */
const beforeSearch = ({ before }: Search) => ({ text: before.text, at: before.at, left: before.left });

type Action = (state: EditorState) => Pressed;

const stateAction =
  (change: (state: EditorState) => EditorState): Action =>
  (state) =>
    onlyState(change(state));

const newLine = stateAction((state) => inserted(state, "\n"));
const toStart = stateAction((state) => moveCursor(state, lineStart(state)));
const toEnd = stateAction((state) => moveCursor(state, lineEnd(state)));
const left = stateAction((state) => moveCursor(state, boundaryBefore(state.text, state.cursor)));
const right = stateAction((state) => moveCursor(state, boundaryAfter(state.text, state.cursor)));
const wordLeft = stateAction((state) => moveCursor(state, wordStart(state)));
const wordRight = stateAction((state) => moveCursor(state, wordEnd(state)));
const up = stateAction((state) => movedByRow(state, -1));
const down = stateAction((state) => movedByRow(state, 1));
const backspace = stateAction((state) => withErased(state, boundaryBefore(state.text, state.cursor)));
const erase = stateAction((state) => withErased(state, boundaryAfter(state.text, state.cursor)));
const cutWord = stateAction((state) => killed(state, wordStart(state)));
const cutNextWord = stateAction((state) => killed(state, wordEnd(state)));
const undo = stateAction(undoEdit);

const KEYS: ReadonlyMap<string, Action> = new Map<string, Action>([
  ["enter", entered],
  ["alt+enter", newLine],
  ["shift+enter", newLine],
  ["ctrl+enter", newLine],
  ["ctrl+j", newLine],
  ["space", stateAction((state) => inserted(state, " ", "typed"))],
  ["shift+space", stateAction((state) => inserted(state, " ", "typed"))],
  ["tab", (state) => ({ state: withOtherKey(state), did: { kind: "complete" } })],
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
  ["ctrl+home", stateAction((state) => moveCursor(state, 0))],
  ["ctrl+end", stateAction((state) => moveCursor(state, state.text.length))],
  ["alt+b", wordLeft],
  ["alt+left", wordLeft],
  ["ctrl+left", wordLeft],
  ["alt+f", wordRight],
  ["alt+right", wordRight],
  ["ctrl+right", wordRight],
  ["ctrl+w", stateAction((state) => killed(state, wordStart(state, isInk)))],
  ["alt+backspace", cutWord],
  ["ctrl+backspace", cutWord],
  ["alt+d", cutNextWord],
  ["alt+delete", cutNextWord],
  ["ctrl+delete", cutNextWord],
  ["ctrl+k", stateAction((state) => killed(state, cutEnd(state)))],
  ["ctrl+u", stateAction((state) => killed(state, cutStart(state)))],
  ["ctrl+y", stateAction((state) => inserted(state, state.killed))],
  ["ctrl+_", undo],
  ["ctrl+/", undo],
  ["ctrl+r", stateAction(searchFrom)],
  ["ctrl+s", stateAction(putAside)],
  [
    "ctrl+d",
    (state) => (state.text === "" ? { state: withOtherKey(state), did: { kind: "leave" } } : erase(state)),
  ],
  ["ctrl+c", clearedByInterrupt],
  ["ctrl+l", (state) => ({ state: withOtherKey(state), did: { kind: "redraw" } })],
  ["ctrl+z", (state) => ({ state: withOtherKey(state), did: { kind: "suspend" } })],
  ["escape", (state) => ({ state: withOtherKey(state), did: { kind: "escape" } })],
]);
