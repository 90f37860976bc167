/**
 * Texts that a shell may be given in ways that are not followed: `exec 3<<< '…'; bash <&3`, `eval "$(echo '…')"`,
 * `echo … | base64 -d | sh`. A command that runs an unknown text asks anyway; here only what is denied is looked for in
 * the texts that stand around it.
 */
import type { Arg } from "../programs/program-model.ts";
import type { Assignment, Node, Redirect, Simple, Span, Word, WordPiece } from "../shell/shell-syntax.ts";
import type { Called } from "./call-effects.ts";
import { looksDangerous, stringsIn } from "./carried-dangers.ts";
import type { Effect } from "./effect.ts";

/** Bounds on the texts that are looked at, and on the nodes in which they are looked for. */
const MAX_TEXTS = 12;
const MAX_NODES = 400;
const MAX_TEXT = 10_000;

/** Texts of the tree that may be run, if one of its effects is that of a command which runs a text that is not known. */
export function strayTexts(tree: Node, effects: readonly Effect[], calls: readonly Called[]): readonly Arg[] {
  if (!effects.some((effect) => runsUnknownText(effect, calls))) return [];
  const found: Arg[] = [];
  textsOf(tree, { found, nodes: 0 });
  return found
    .flatMap((text) => [text, ...decoded(text)])
    .filter(({ value }) => looksDangerous(value))
    .slice(0, MAX_TEXTS);
}

/** Programs that run each line of stdin. */
const LINE_RUNNERS: ReadonlySet<string> = new Set(["parallel", "sem", "script"]);

/** A shell or another program gets its commands from somewhere, or the name of a command is not known. */
export function runsUnknownText(effect: Effect, calls: readonly Called[]): boolean {
  if (effect.kind === "code")
    return effect.from === "input" && effect.text === undefined && effect.followed !== true;
  if (effect.kind !== "unknown") return false;
  if (effect.doubt === "command.escapes") return LINE_RUNNERS.has(effect.by);
  if (effect.doubt !== "word.dynamic") return false;
  const name = calls[effect.call]?.words[0];
  return name !== undefined && name.span[0] === effect.span[0] && name.span[1] === effect.span[1];
}

interface Search {
  readonly found: Arg[];
  nodes: number;
}

function textsOf(node: Node, search: Search): void {
  search.nodes += 1;
  if (search.nodes > MAX_NODES) return;
  switch (node.kind) {
    case "simple":
      return simpleTexts(node, search);
    case "list":
      for (const item of node.items) textsOf(item.node, search);
      return;
    case "pipeline":
      for (const part of node.parts) textsOf(part, search);
      return;
    case "compound":
      redirectTexts(node.redirects, search);
      for (const word of node.words ?? []) scriptTexts(word, search);
      for (const body of node.bodies) textsOf(body, search);
  }
}

/** They print, pass on or keep what they are given. */
const PASSING: ReadonlySet<string> = new Set(
  `echo printf print set cat tee read mapfile readarray exec base64 xxd rev tr sed awk jq yq xargs parallel script sh bash
  dash ash zsh ksh source . coproc`.split(/\s+/),
);
/** Their arguments are one text. */
const PRINTERS: ReadonlySet<string> = new Set(["echo", "printf", "print", "set"]);
/** Their arguments are programs that may print a text. */
const PROGRAMMED = /^(?:jq|yq|[gmn]?awk|sed|perl|ruby|node|php|(?:python|pypy)[\d.]*)$/;

function simpleTexts({ words, assignments, redirects, span }: Simple, search: Search): void {
  for (const word of words) scriptTexts(word, search);
  for (const assignment of assignments) assignedTexts(assignment, search);
  // What is written into a file is not run as it stands here.
  if (redirects.some(writesFile)) return;
  const [name = "", ...rest] = words.map(plainText);
  if (words.length === 0 || PASSING.has(name)) redirectTexts(redirects, search);
  if (PRINTERS.has(name))
    printedTexts(words.slice(name === "printf" && rest[0] === "-v" ? 3 : 1), span, search);
  if (PROGRAMMED.test(name))
    for (const value of rest.flatMap(stringsIn)) search.found.push({ kind: "literal", value, span });
}

/** The words as one text, and each word that is a text of its own. */
function printedTexts(words: readonly Word[], span: Span, search: Search): void {
  addText(words, span, search);
  for (const word of words) if (/\s/.test(plainText(word))) addText([word], span, search);
}

function assignedTexts({ value, others, span }: Assignment, search: Search): void {
  const values = value === null ? others : [value];
  for (const word of values) scriptTexts(word, search);
  printedTexts(values, span, search);
}

const writesFile = ({ operator, target }: Redirect): boolean =>
  operator.includes(">") &&
  operator !== ">&" &&
  !target.pieces.some(({ kind }) => kind === "script") &&
  !/^(?:\/dev\/|$)/.test(plainText(target));

function redirectTexts(redirects: readonly Redirect[], search: Search): void {
  for (const { operator, target, span } of redirects) {
    scriptTexts(target, search);
    if (operator === "<<" || operator === "<<<") addText([target], span, search);
  }
}

function scriptTexts({ pieces }: Word, search: Search): void {
  for (const piece of pieces) {
    if (piece.kind === "script") textsOf(piece.body, search);
    else if (piece.kind === "unknown") for (const script of piece.scripts) textsOf(script, search);
  }
}

function addText(words: readonly Word[], span: Span, { found }: Search): void {
  const value = words
    .map(plainText)
    .filter((text) => !/^-[enEr-]*$/.test(text))
    .join(" ");
  if (value !== "" && value.length <= MAX_TEXT)
    found.push({ kind: "literal", value: unescaped(value), span });
}

const plainText = ({ pieces }: Word): string => pieces.map(pieceText).join("");

function pieceText(piece: WordPiece): string {
  if (piece.kind === "text" || piece.kind === "glob") return piece.text;
  return piece.kind === "home" ? "~" : "_";
}

/** As `printf` and `echo -e` print it. */
const unescaped = (text: string): string =>
  text.includes("\\")
    ? text
        .replace(/\\x([\da-f]{1,2})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
        .replace(/\\0?([0-7]{2,3})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 8)))
        .replaceAll("\\n", "\n")
        .replaceAll("\\t", "\t")
    : text;

/** What base64, xxd or rev make of the text, where that is readable. */
function decoded({ value, span, kind }: Arg): readonly Arg[] {
  const text = value.trim();
  const made = [text.split("").toReversed().join("")];
  if (/^[\w+/]{8,}={0,2}$/.test(text) && text.length % 4 === 0) made.push(atob(text));
  if (/^(?:[\da-f]{2}){4,}$/i.test(text)) made.push(unescaped(text.replace(/../g, "\\x$&")));
  return made.filter((each) => /^[\t\n -~]+$/.test(each)).map((each) => ({ kind, value: each, span }));
}
