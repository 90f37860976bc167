import {
  type Assignment as SourceAssignment,
  type Command,
  type CompoundList,
  parse,
  type Redirection,
  type ParsedScript,
  type Statement,
} from "unbash";
import type { Assignment, List, Node, Reading, Redirect, Simple, Span, Word } from "../syntax.ts";
import { compoundOf } from "./compound.ts";
import { redirectOf } from "./redirects.ts";
import { assignmentAsWord, type ScriptPart, scriptsIn, wordOf, wordsOf } from "./words.ts";

/** The tree that the package `unbash` reads, in our words. */
export function readUnbash(text: string): Reading {
  const script = parse(text);
  const converter = new Converter();
  const tree = converter.script(script);
  return { tree, errors: converter.errors };
}

/** Where a tree is made of, and what went wrong on the way. */
export class Converter {
  readonly errors: { readonly message: string; readonly span: Span }[] = [];
  /** Inside decoded backticks positions mean nothing: everything there has the place of the whole. */
  private whole: Span | null = null;
  readonly inner = (part: ScriptPart): Node => this.substitution(part);

  span({ pos, end }: { readonly pos: number; readonly end: number }): Span {
    return this.whole ?? [pos, end];
  }

  fail(message: string, at: { readonly pos: number; readonly end: number }): void {
    this.errors.push({ message, span: this.span(at) });
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
    if (only !== undefined && parts.length === 1) return only;
    return { kind: "pipeline", span: [parts[0]?.span[0] ?? 0, parts.at(-1)?.span[1] ?? 0], parts };
  }

  words(source: Parameters<typeof wordsOf>[0]): readonly Word[] {
    return wordsOf(source, this.inner).map((word) => this.placed(word));
  }

  word(source: Parameters<typeof wordsOf>[0]): Word {
    return this.placed(wordOf(source, this.inner));
  }

  placed<T extends { readonly span: Span }>(thing: T): T {
    return this.whole === null ? thing : { ...thing, span: this.whole };
  }

  redirects(sources: readonly Redirection[]): readonly Redirect[] {
    return sources.flatMap((source) => redirectOf(source, this));
  }

  private simple(source: Command): Simple {
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
    const { script } = part;
    if (script === undefined || part.text.startsWith("${")) {
      this.fail("a substitution that is not read", part);
      return { kind: "list", span: this.span(part), items: [] };
    }
    const outer = this.whole;
    if (script.source !== undefined) this.whole ??= [part.pos, part.end];
    const list = this.script(script);
    this.whole = outer;
    return list;
  }
}

const asPiece = (body: Node): Word["pieces"][number] => ({ kind: "script", via: "$(", body, quoted: false });

/** `|&`: its errors go the same way. */
function withErrors(node: Node): Node {
  if (node.kind !== "simple" && node.kind !== "compound") return node;
  const target: Word = { span: node.span, pieces: [{ kind: "text", text: "1" }] };
  return {
    ...node,
    redirects: [...node.redirects, { span: node.span, operator: ">&", descriptor: 2, target }],
  };
}
