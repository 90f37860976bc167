import { FIXED, type Fixed, type Model, type Role, ROLES } from "./model.ts";

export interface OptionSpec {
  readonly name: string;
  readonly takes: "nothing" | "value" | "maybe";
  readonly role: Role;
  /** The role that all operands get when it is given. */
  readonly turns: Role | null;
  readonly fixed: Fixed | null;
}

export interface OptionTable {
  readonly named: ReadonlyMap<string, OptionSpec>;
  readonly numbers: boolean;
  /** No option of it does more than read, and none is left out that does: a word that turns out to be an option does no harm. */
  readonly tame: boolean;
}

const FIXED_WORDS: ReadonlySet<string> = new Set(FIXED);
const ROLE_WORDS: ReadonlySet<string> = new Set(ROLES);
const TAME: ReadonlySet<Role> = new Set<Role>(["data", "pattern", "read"]);

/** Reads the small language of `Model.options`. A mistake in a table is a mistake of ours: it throws. */
export function optionTable({ options = "", singleDash = false, complete = false }: Model): OptionTable {
  const named = new Map<string, OptionSpec>();
  let numbers = false;
  for (const token of options.split(/\s+/)) {
    if (token === "") continue;
    if (token === "-NUM") {
      numbers = true;
      continue;
    }
    for (const spec of specsOf(token, singleDash)) {
      if (named.has(spec.name)) throw new Error(`the option ${spec.name} stands twice in: ${options}`);
      named.set(spec.name, spec);
    }
  }
  const reads = ({ role, turns, fixed }: OptionSpec): boolean =>
    TAME.has(role) && (turns === null || TAME.has(turns)) && fixed === null;
  const tame = complete && [...named.values()].every(reads);
  return { named, numbers, tame };
}

function specsOf(token: string, singleDash: boolean): readonly OptionSpec[] {
  const [head = "", turn] = token.split("!");
  if (!/^--?[^-]/.test(head)) throw new Error(`not an option of a table: ${token}`);
  const [turns, fixed] = turnOf(turn, token);
  const long = head.startsWith("--") || singleDash;
  const cut = cutOf(head, long);
  const names = head.slice(0, cut);
  const spec = { ...valueOf(head.slice(cut), token), turns, fixed };
  if (long) return [{ name: names, ...spec }];
  const letters = names.slice(1).split("");
  if (spec.takes !== "nothing" && letters.length > 1)
    throw new Error(`one letter only may take a value: ${token}`);
  return letters.map((letter) => ({ name: `-${letter}`, ...spec }));
}

/** Where the names end: at `=` of long ones, behind the first letter's `:` or `?` of short ones. */
function cutOf(head: string, long: boolean): number {
  const at = long ? head.indexOf("=") : head.slice(2).search(/[:?]/) + 2;
  return at < (long ? 0 : 2) ? head.length : at;
}

/** `=read`, `:`, `=?`, `?write` or nothing. */
function valueOf(text: string, token: string): Pick<OptionSpec, "takes" | "role"> {
  if (text === "") return { takes: "nothing", role: "data" };
  const word = text.replace(/^[:=]?\??/, "");
  return { takes: /^=?\?/.test(text) ? "maybe" : "value", role: word === "" ? "data" : roleOf(word, token) };
}

function turnOf(turn: string | undefined, token: string): readonly [Role | null, Fixed | null] {
  if (turn === undefined) return [null, null];
  return FIXED_WORDS.has(turn) ? [null, turn as Fixed] : [roleOf(turn, token), null];
}

export function roleOf(word: string, where: string): Role {
  if (!ROLE_WORDS.has(word)) throw new Error(`not a role: ${word} in ${where}`);
  return word as Role;
}
