import type { ChunkKind } from "../words.ts";
import type { Mark } from "./marks.ts";

/** `function name {`, `name() {`, and the cases of bats: `@test "what it does" {`. The bracket may come on the next line. */
const OPENINGS: readonly RegExp[] = [
  /^(?<indent>[ \t]*)function[ \t]+(?<name>[^\s(){}'"$;]+)[ \t]*(?:\(\s*\))?[ \t]*(?<body>[{(].*)?$/,
  /^(?<indent>[ \t]*)(?<name>[^\s(){}'"$;#=]+)[ \t]*\([ \t]*\)[ \t]*(?<body>[{(].*)?$/,
  /^(?<indent>[ \t]*)@test[ \t]+["'](?<name>.+)["'][ \t]*(?<body>\{.*)$/,
];
const IMPORT = /^(?:source|\.)[ \t]+\S/;

interface Opened {
  readonly name: string;
  readonly indent: string;
  /** Whether it ends on its own line. */
  readonly closed: boolean;
}

/**
 * The marks of a shell script, by its lines: a function ends with the first closing bracket that is indented as its
 * name is. The grammar in the parser's package knows more, at the price of half a gigabyte while it is compiled.
 */
export function shellMarks(text: string): readonly Mark[] {
  const script = new Script();
  let at = 0;
  for (const line of text.split("\n")) {
    script.line(line.trimEnd(), at);
    at += line.length + 1;
  }
  return script.marks;
}

class Script {
  readonly marks: Mark[] = [{ at: 0, kind: "code", names: [], own: false, scope: "" }];
  private inside: Opened | undefined;
  /** Where the comment began that stands right above. */
  private comment = -1;
  /** Whether the next statement begins another part: behind a function, behind an empty line. */
  private fresh = false;

  line(line: string, at: number): void {
    if (this.inside !== undefined) this.body(line, this.inside);
    else if (line === "") this.pause();
    else if (line.startsWith("#")) {
      if (this.comment === -1) this.comment = at;
    } else this.statement(line, this.comment === -1 ? at : this.comment);
  }

  private body(line: string, { indent }: Opened): void {
    if (!line.startsWith(`${indent}}`) && !line.startsWith(`${indent})`)) return;
    this.inside = undefined;
    this.fresh = true;
  }

  private pause(): void {
    if (this.comment !== -1) this.mark(this.comment, "code");
    this.comment = -1;
    this.fresh = true;
  }

  private statement(line: string, at: number): void {
    const opened = opening(line);
    if (opened !== undefined) this.mark(at, "function", opened.name);
    else if (IMPORT.test(line)) this.mark(at, "imports");
    else if (this.begins(line)) this.mark(at, "code");
    this.inside = opened?.closed === false ? opened : undefined;
    this.fresh = opened?.closed === true || IMPORT.test(line);
    this.comment = -1;
  }

  /** Whether a statement opens another part; one that is indented only behind a function. */
  private begins(line: string): boolean {
    const top = !/^[\s})]/.test(line);
    return (top && this.comment !== -1) || (this.fresh && (top || this.marks.at(-1)?.own === true));
  }

  private mark(at: number, kind: ChunkKind, name?: string): void {
    this.marks.push({
      at,
      kind,
      names: name === undefined ? [] : [name],
      own: name !== undefined,
      scope: "",
    });
  }
}

function opening(line: string): Opened | undefined {
  if (line.length > 500) return undefined;
  for (const form of OPENINGS) {
    const { name, indent = "", body = "" } = form.exec(line)?.groups ?? {};
    if (name !== undefined) return { name, indent, closed: /[)}]\s*(?:#.*)?$/.test(body) };
  }
  return undefined;
}
