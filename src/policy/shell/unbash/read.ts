import {
  type Assignment as SourceAssignment,
  type Command,
  type CompoundList,
  parse,
  type Pipeline,
  type Redirection,
  type ParsedScript,
  type Statement,
} from "unbash";
import type { Assignment, List, Node, Reading, Redirect, Simple, Span, Word } from "../syntax.ts";
import { compoundOf } from "./compound.ts";
import { BUDGET, COST, DEEPEST_TREE, deepestFor } from "./limits.ts";
import { nothing, withErrors } from "./parts.ts";
import { redirectOf } from "./redirects.ts";
import { assignmentAsWord, type ScriptPart, type ScriptReader, scriptsIn, wordOf, wordsOf } from "./words.ts";

/** The tree that the package `unbash` reads, in our words. */
export function readUnbash(text: string): Reading {
  const converter = new Converter(text);
  const tree = converter.script(parse(text));
  return { tree, errors: converter.errors };
}

/** Makes one tree, and keeps what went wrong on the way. */
export class Converter {
  readonly errors: { readonly message: string; readonly span: Span }[] = [];
  /** Inside decoded backticks positions mean nothing: everything there has the place of the whole. */
  private whole: Span | null = null;
  private depth = 0;
  private scripts = 0;
  private left = BUDGET;
  private readonly deepest: number;
  /** Of the text: the parser puts some ends behind it. */
  private readonly length: number;

  constructor(text: string) {
    this.length = text.length;
    this.deepest = deepestFor(text);
  }

  readonly inner: ScriptReader = {
    script: (part) => this.reparsed(part, nothing(this.span(part)), () => this.substitution(part)),
    reparsed: (at, otherwise, work) => this.reparsed(at, otherwise, work),
    deeper: (at, otherwise, work) => this.deeper(at, otherwise, work),
  };

  span({ pos, end }: { readonly pos: number; readonly end: number }): Span {
    return this.whole ?? [Math.min(pos, this.length), Math.min(end, this.length)];
  }

  fail(message: string, at: { readonly pos: number; readonly end: number }): void {
    this.errors.push({ message, span: this.span(at) });
  }

  private deeper<T>(at: { readonly pos: number; readonly end: number }, otherwise: T, work: () => T): T {
    if (this.depth >= DEEPEST_TREE) {
      this.tooDeep(at);
      return otherwise;
    }
    this.depth += 1;
    const made = work();
    this.depth -= 1;
    return made;
  }

  private reparsed<T>(at: { readonly pos: number; readonly end: number }, otherwise: T, work: () => T): T {
    if (this.scripts >= this.deepest) {
      this.tooDeep(at);
      return otherwise;
    }
    this.scripts += 1;
    const made = this.deeper(at, otherwise, work);
    this.scripts -= 1;
    return made;
  }

  /** Expansions that are not even looked for, as the parser would take its time over them. */
  tooMany(source: { readonly text: string; readonly pos: number; readonly end: number }): boolean {
    const many = this.deepest === 0 && source.text.includes("$");
    if (many) this.tooDeep(source);
    return many;
  }

  /** False when the text holds more than anybody writes: the rest of it is not looked at. */
  private spend(cost: number, at: { readonly pos: number; readonly end: number }): boolean {
    if (this.left < 0) return false;
    this.left -= cost;
    if (this.left < 0) this.fail("more commands, words and redirects than are looked at", at);
    return this.left >= 0;
  }

  private tooDeep(at: { readonly pos: number; readonly end: number }): void {
    this.fail("too many levels in each other", at);
  }

  script(script: ParsedScript): List {
    for (const { message, pos } of script.errors ?? []) this.fail(message, { pos, end: pos + 1 });
    return this.list(script.commands, script);
  }

  list(statements: readonly Statement[], at: { readonly pos: number; readonly end: number }): List {
    const items = statements.flatMap(({ command, background }) => {
      const last = background === true ? "&" : ";";
      if (command.type !== "AndOr") return [{ node: this.node(command), then: last } as const];
      const { commands, operators } = command;
      return commands.map(
        (part, index) => ({ node: this.node(part), then: operators[index] ?? last }) as const,
      );
    });
    const [first, end] = [items[0]?.node.span[0] ?? at.pos, items.at(-1)?.node.span[1] ?? at.pos];
    return { kind: "list", span: this.whole ?? [first, end], items };
  }

  body = (body: CompoundList): List => this.list(body.commands, body);

  node(source: Exclude<Statement["command"], { readonly type: "AndOr" }>): Node {
    if (source.type === "Command") return this.simple(source);
    if (source.type !== "Pipeline") return compoundOf(source, this);
    const parts = source.commands.map((part, index) => {
      const node = this.node(part);
      return source.operators[index] === "|&" ? withErrors(node) : node;
    });
    const [only] = parts;
    if (only !== undefined && parts.length === 1) return isNegated(source) ? negated(only) : only;
    return { kind: "pipeline", span: [parts[0]?.span[0] ?? 0, parts.at(-1)?.span[1] ?? 0], parts };
  }

  words(source: Parameters<typeof wordsOf>[0]): readonly Word[] {
    if (!this.spend(COST.word, source) || this.tooMany(source)) return [];
    return wordsOf(source, this.inner).map((word) => this.placed(word));
  }

  word(source: Parameters<typeof wordsOf>[0]): Word {
    if (this.tooMany(source)) return { span: this.span(source), pieces: [] };
    return this.placed(wordOf(source, this.inner));
  }

  placed<T extends { readonly span: Span }>(thing: T): T {
    const [pos, end] = thing.span;
    return this.whole === null && end <= this.length ? thing : { ...thing, span: this.span({ pos, end }) };
  }

  redirects(sources: readonly Redirection[]): readonly Redirect[] {
    return sources.flatMap((source) => (this.spend(COST.redirect, source) ? redirectOf(source, this) : []));
  }

  private simple(source: Command): Simple {
    this.spend(COST.command, source);
    const name = source.name === undefined ? [] : this.words(source.name);
    const assignments = source.prefix.filter((part) => part.type === "Assignment");
    const words =
      source.suffix.length === 0
        ? name
        : [
            ...name,
            ...source.args.flatMap((arg) =>
              arg.type === "Word" ? this.words(arg) : [this.placed(assignmentAsWord(arg, this.inner))],
            ),
          ];
    return {
      kind: "simple",
      span: this.span(source),
      assignments: assignments.map((assignment) => this.assignment(assignment)),
      words,
      redirects: source.redirects.length === 0 ? [] : this.redirects(source.redirects),
    };
  }

  private assignment(source: SourceAssignment): Assignment {
    const { name, value, append = false, index } = source;
    const plain = value.type === "Word" && index === undefined;
    const others = plain
      ? []
      : [{ span: this.span(source), pieces: scriptsIn(source, this.inner).map(asPiece) }];
    return { span: this.span(source), name, value: plain ? this.word(value) : null, append, others };
  }

  private substitution(part: ScriptPart): Node {
    if (!this.spend(COST.substitution, part)) return nothing(this.span(part));
    const { script } = part;
    if (script === undefined || part.text.startsWith("${")) {
      this.fail("a substitution that is not read", part);
      return nothing(this.span(part));
    }
    const outer = this.whole;
    if (script.source !== undefined) this.whole ??= [part.pos, part.end];
    const list = this.script(script);
    this.whole = outer;
    return list;
  }
}

const asPiece = (body: Node): Word["pieces"][number] => ({ kind: "script", via: "$(", body, quoted: false });

const isNegated = ({ prefixes }: Pipeline): boolean => prefixes.some(({ type }) => type === "Negation");

const negated = (body: Node): Node => ({
  kind: "compound",
  what: "not",
  span: body.span,
  name: null,
  words: null,
  bodies: [body],
  redirects: [],
});
