import { isInside } from "../paths/normal.ts";
import type { Node, Simple } from "../shell/syntax.ts";
import type { Assumed, Words } from "./assume.ts";
import { namesOf } from "./names.ts";
import type { Scope } from "./scope.ts";

interface At {
  readonly scope: Scope;
  readonly words: Words;
  readonly workspace: string;
  readonly quoted: boolean;
}

/** What a substitution puts into the text, where that is certain whatever the files hold. */
export function printed(body: Node, at: At): Assumed | null {
  if (printsNumber(body)) return NUMBER;
  const last = lastOf(body);
  const whole = simpleOf(body);
  const [name = "", ...texts] = wordsOf(whole ?? last);
  if (whole !== null && name in ALONE) return ALONE[name as keyof typeof ALONE](texts, whole, at);
  const text = whole === null ? null : catted(whole, at);
  if (text !== null) return literal(text);
  if (at.quoted) return null;
  const found = namesOf(body, at.words, at.workspace);
  return found === null ? null : { kind: "glob", value: found };
}

const NUMBER: Assumed = { kind: "literal", value: "7" };
const literal = (value: string): Assumed => ({ kind: "literal", value });

type Prints = (texts: readonly string[], node: Simple, at: At) => Assumed | null;

const ALONE: Readonly<Record<"pwd" | "git" | "mktemp" | "dirname" | "basename" | "date" | "nproc", Prints>> =
  {
    pwd: (texts, _, { scope: { folders } }) => {
      const [folder, ...others] = folders;
      return texts.every((text) => text === "-P" || text === "-L") &&
        typeof folder === "string" &&
        others.length === 0
        ? literal(folder)
        : null;
    },
    git: (texts, _, { scope: { folders }, workspace }) => {
      const inside = folders.every((folder) => folder !== null && isInside(workspace, folder));
      const words = texts.join(" ");
      if (words === "rev-parse --show-toplevel") return inside ? literal(workspace) : null;
      return /^rev-parse (?:--short )?HEAD$/.test(words) ? literal("0a1b2c3") : null;
    },
    mktemp: (texts) => {
      const operands = texts.filter((text) => !/^-[dqut]+$/.test(text));
      const [template, ...more] = operands;
      if (template === undefined) return literal("/tmp/tmp.XXXXXXXXXX");
      if (more.length > 0 || template.startsWith("-") || template.includes("$")) return null;
      if (template.startsWith("/")) return literal(template);
      return texts.some((text) => /^-[dqu]*t/.test(text)) && !template.includes("/")
        ? literal(`/tmp/${template}`)
        : null;
    },
    dirname: (_, node, at) =>
      named(node, at, (value) => (value.includes("/") ? value.replace(/(?<=.)\/[^/]*$|[^/]*$/, "") : ".")),
    basename: (texts, node, at) =>
      named(node, at, (value) => {
        const name = value.slice(value.lastIndexOf("/") + 1);
        const [, suffix = ""] = texts;
        return suffix !== "" && name.endsWith(suffix) ? name.slice(0, -suffix.length) : name;
      }),
    date: ([format, ...more]) =>
      format !== undefined && more.length === 0 && /^\+(?:%[YmdHMSsNjuVyeIpBba]|[\w.:-])+$/.test(format)
        ? literal(format.slice(1).replaceAll(/%\w/g, "7"))
        : null,
    nproc: () => NUMBER,
  };

/** `cat <<'EOF'`: the text itself. */
function catted(
  { words, redirects: [redirect, ...more] }: Simple,
  { words: read, quoted }: At,
): string | null {
  if (words.length !== 1 || redirect?.operator !== "<<" || more.length > 0 || !quoted) return null;
  const [cat, text] = read([...words, redirect.target]);
  return cat?.value === "cat" && text?.kind === "literal" ? text.value.replace(/\n+$/, "") : null;
}

function named(node: Simple, { words }: At, part: (value: string) => string): Assumed | null {
  const [, arg] = words(node.words);
  if (arg === undefined || arg.kind === "dynamic" || arg.value.startsWith("-")) return null;
  const value = part(arg.value);
  return value === "" || value === ".." || value.endsWith("/..") ? null : { kind: arg.kind, value };
}

/** It prints a number, or fails and prints nothing. */
export function printsNumber(body: Node): boolean {
  const [name, ...texts] = wordsOf(lastOf(body));
  const words = texts.join(" ");
  switch (name) {
    case "nproc":
      return true;
    case "date":
      return words === "+%s" || words === "+%s%N";
    case "wc":
      return /^-[lwcm]$/.test(words);
    case "id":
      return words === "-u" || words === "-g";
    case "grep":
      return /^-[a-zA-Z]*c/.test(words) && !/(?:^| )-[a-zA-Z]*[rRH]/.test(words);
    case "stat":
      return /^(?:-c|-f) ?%[szYX] /.test(words);
    default:
      return false;
  }
}

/** The last command of a substitution: what it prints is what is put there. */
function lastOf(body: Node): Simple | null {
  if (body.kind === "simple") return body;
  if (body.kind === "pipeline") return lastOf(body.parts.at(-1) ?? body);
  if (body.kind !== "list") return null;
  const [only, ...more] = body.items;
  return only !== undefined && more.length === 0 ? lastOf(only.node) : null;
}

function simpleOf(body: Node): Simple | null {
  if (body.kind === "simple") return body;
  if (body.kind !== "list") return null;
  const [only, ...more] = body.items;
  return only !== undefined && more.length === 0 ? simpleOf(only.node) : null;
}

/** The words of a command; `$` in one that is not a plain text. */
const wordsOf = (node: Simple | null): readonly string[] =>
  (node?.words ?? []).map(({ pieces }) =>
    pieces.map((piece) => (piece.kind === "text" ? piece.text : "$")).join(""),
  );
