import type { Arg, Use } from "../models/model.ts";
import type { List, Node, Piece, Word } from "../shell/syntax.ts";
import { numbersIn } from "./numbers.ts";
import { printed } from "./printed.ts";
import { isFilter, namesOf } from "./names.ts";
import type { Scope } from "./scope.ts";

/** What a piece of a word stands for: this, or something that leads to the same places. */
export type Assumed = Pick<Arg, "kind" | "value">;
export type Words = (words: readonly Word[]) => readonly Arg[];

const NUMBER: Assumed = { kind: "literal", value: "7" };

/**
 * What is certain enough to say that a command stays in the box, and not certain enough to decide by: what `pwd`, `mktemp`
 * or `git rev-parse --show-toplevel` print, numbers, names of files that a pattern or a search finds in the workspace.
 */
export class Assumptions {
  private readonly workspace: string;
  private readonly numbers: ReturnType<typeof numbersIn>;

  constructor(tree: List, workspace: string) {
    this.workspace = workspace;
    this.numbers = numbersIn(tree);
  }

  of(piece: Piece, scope: Scope, words: Words): Assumed | null {
    switch (piece.kind) {
      case "variable":
        return this.variable(piece.name, scope);
      case "script":
        return piece.via === "<(" || piece.via === ">("
          ? null
          : printed(piece.body, { scope, words, workspace: this.workspace, quoted: piece.quoted });
      case "unknown":
        if (piece.what === "arithmetic") return this.isNumber(piece.text) ? NUMBER : null;
        return piece.what === "parameter" && piece.scripts.length === 0
          ? this.parameter(piece.text ?? "", scope)
          : null;
      default:
        return null;
    }
  }

  /** Calculates with nothing but numbers. */
  isNumber(text: string | undefined): boolean {
    return text !== undefined && this.numbers.calculates(text);
  }

  /** What goes into a pipe in front of `xargs`. */
  namesFrom(part: Node, fed: Use["input"], words: Words): Use["input"] | null {
    if (typeof fed !== "string" && fed.found === true && isFilter(part)) return fed;
    const name = namesOf(part, words, this.workspace);
    return name === null ? null : { text: `${name}\n`, span: part.span, found: true };
  }

  private variable(name: string, scope: Scope): Assumed | null {
    const known = scope.variables.get(name);
    if (known !== undefined) {
      const { kind, value } = known;
      const plain = !/\s/.test(value) && value !== "";
      return kind !== "dynamic" && plain ? { kind, value } : null;
    }
    if (/^[?!#$]$/.test(name) || this.numbers.has(name)) return NUMBER;
    if (name === "TMPDIR") return { kind: "literal", value: "/tmp" };
    return SYSTEM_LISTS.has(name) ? { kind: "literal", value: "/usr/lib" } : null;
  }

  /** `${x%…}`, `${x#…}`: a part of a name. `${x:-text}`: this or that. */
  private parameter(text: string, scope: Scope): Assumed | null {
    const [, name = "", operator, rest = ""] =
      /^\$\{(\w+)(##?|%%?|:?[-+])([\w./*@,:$-]*)\}$/.exec(text) ?? [];
    const known = operator === undefined ? null : this.variable(name, scope);
    if (operator === undefined || known === null) return null;
    if (/^:?-$/.test(operator)) return this.either(name, known, rest);
    if (/^:?\+$/.test(operator))
      return SYSTEM_LISTS.has(name) && rest === `:$${name}` ? { kind: "literal", value: ":/usr/lib" } : null;
    return rest.includes("$") ? null : trimmed(known, operator, rest);
  }

  private either(name: string, known: Assumed | null, rest: string): Assumed | null {
    const usual = (name === "TMPDIR" && rest === "/tmp") || (SYSTEM_LISTS.has(name) && rest === "");
    return usual ? known : null;
  }
}

/** The box starts with its own folders in them. */
const SYSTEM_LISTS = new Set([
  "PATH",
  "PYTHONPATH",
  "NODE_PATH",
  "LD_LIBRARY_PATH",
  "PKG_CONFIG_PATH",
  "CPATH",
  "LIBRARY_PATH",
  "PERL5LIB",
  "RUBYLIB",
  "CLASSPATH",
  "MANPATH",
]);

function trimmed({ kind, value }: Assumed, operator: string, pattern: string): Assumed | null {
  const slash = value.lastIndexOf("/");
  if (operator === "##") return pattern === "*/" ? named(kind, value.slice(slash + 1)) : null;
  if (operator === "#") return null;
  if (pattern === "/*") return operator === "%" && slash > 0 ? { kind, value: value.slice(0, slash) } : null;
  // The end of its last name goes, so that it stays in its folder.
  if (!/^[.\w*-]+$/.test(pattern) || pattern.includes("/")) return null;
  const literal = !pattern.includes("*") && value.endsWith(pattern);
  return named(kind, literal ? value.slice(0, -pattern.length) : value);
}

const named = (kind: Arg["kind"], value: string): Assumed | null =>
  value === "" || /(?:^|\/)\.{0,2}$/.test(value) ? null : { kind, value };
