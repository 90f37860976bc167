import type { Assignment, Compound, Node, Piece, Simple, Word } from "../shell/syntax.ts";
import { printsNumber } from "./printed.ts";

export interface Numbers {
  /** A variable that holds nothing but a number, wherever it is read. */
  has(name: string): boolean;
  /** Arithmetic over such variables alone: nothing in it can hold a subscript to run. */
  calculates(text: string): boolean;
}

/** Commands that set the variables they name, to what nobody knows. */
const SETS = new Set(
  "read mapfile readarray declare typeset local getopts let printf export readonly unset select".split(" "),
);
/** After these any variable may hold anything. */
const SETS_ANY = new Set(["eval", "source", "."]);

const NAME = /[A-Za-z_]\w*/g;
const PLAIN = /^[\w\s$+\-*/%<>=!&|?:(),;^~]*$/;

/** Which variables of a text are numbers, by all that the text ever puts into them. */
export function numbersIn(tree: Node): Numbers {
  const told = new Map<string, boolean>();
  let any = false;
  const tell = (name: string, isNumber: boolean): void => {
    told.set(name, isNumber && told.get(name) !== false);
  };
  const look = (part: unknown): void => {
    if (typeof part !== "object" || part === null) return;
    any ||= toldBy(part, tell);
    for (const inner of Object.values(part)) if (typeof inner === "object") look(inner);
  };
  look(tree);
  const has = (name: string): boolean => !any && told.get(name) === true;
  // A small name that the text never sets is empty: the environment's names are large.
  const isTame = (name: string): boolean => !any && (told.get(name) ?? /^[a-z]\w*$/.test(name));
  return {
    has,
    calculates: (text) => {
      const inner = text.replace(/^\$?\(\(|\)\)$/g, "");
      return PLAIN.test(inner) && !/\$(?![A-Za-z_])/.test(inner) && (inner.match(NAME) ?? []).every(isTame);
    },
  };
}

/** Answers whether anything may be set. */
function toldBy(part: object, tell: Tell): boolean {
  if ("append" in part) assigned(part as Assignment, tell);
  if ("what" in part && (part.what === "for" || part.what === "select")) looped(part as Compound, tell);
  return "kind" in part && part.kind === "simple" && commanded((part as Simple).words, tell);
}

type Tell = (name: string, isNumber: boolean) => void;

const assigned = ({ name, value, others }: Assignment, tell: Tell): void =>
  tell(name, others.length === 0 && value !== null && isNumeric(value));

function looped({ name, words }: Compound, tell: Tell): void {
  if (name !== null) tell(name, words !== null && words.every(isNumeric));
}

function commanded(words: readonly Word[], tell: Tell): boolean {
  const [name = "", ...rest] = words.map(({ pieces }) =>
    pieces.map((piece) => (piece.kind === "text" ? piece.text : "$")).join(""),
  );
  if (SETS.has(name))
    for (const word of rest) {
      if (word.includes("$") && !word.includes("=")) return true;
      tell(word.replace(/\+?=.*$/s, ""), false);
    }
  return SETS_ANY.has(name);
}

const isNumeric = ({ pieces: [piece, ...more] }: Word): boolean =>
  more.length === 0 && piece !== undefined && isNumberPiece(piece);

function isNumberPiece(piece: Piece): boolean {
  switch (piece.kind) {
    case "text":
      return /^-?\d+$/.test(piece.text);
    case "variable":
      return /^[?!#$]$/.test(piece.name);
    case "script":
      return printsNumber(piece.body);
    case "unknown":
      return piece.what === "arithmetic";
    default:
      return false;
  }
}
