import {
  type ArithmeticExpression,
  type Command,
  type CommandNode,
  type CompoundList,
  type For,
  type HereDoc,
  parse,
  type ParsedScript,
  type Pipeline,
  type Redirection,
  type Select,
  type Assignment as SourceAssignment,
  type Word as SourceWord,
  type Statement,
  type TestExpression,
} from "unbash";
import type {
  Assignment,
  Compound,
  List,
  Node,
  ShellReading,
  Redirect,
  Simple,
  Span,
  Word,
} from "./shell-syntax.ts";
import {
  assignmentAsWord,
  merged,
  plainPieces,
  plainWord,
  type ScriptPart,
  type ScriptReader,
  scriptsIn,
  textPieces,
  wordOf,
  wordsOf,
} from "./unbash-words.ts";

/** Converts the tree of the package `unbash` to the tree of `shell-syntax.ts`. */
export function readUnbash(text: string): ShellReading {
  const converter = new Converter(text);
  const tree = converter.whole(parse(text));
  return { tree, errors: converter.errors };
}

/** Converts one tree and collects the problems on the way. */
class Converter implements ScriptReader {
  readonly errors: { readonly message: string; readonly span: Span }[] = [];
  /** Positions inside decoded backticks are meaningless: everything there gets the span of the backtick. */
  #decoded: Span | null = null;
  #depth = 0;
  #scripts = 0;
  #left = BUDGET;
  readonly #deepest: number;
  /** Length of the text: the parser places some ends beyond it. */
  readonly #length: number;

  constructor(text: string) {
    this.#length = text.length;
    this.#deepest = deepestFor(text);
  }

  script(part: ScriptPart): Node {
    return this.reparsed(part, nothing(this.span(part)), () => this.#substitution(part));
  }

  span({ pos, end }: { readonly pos: number; readonly end: number }): Span {
    return this.#decoded ?? [Math.min(pos, this.#length), Math.min(end, this.#length)];
  }

  fail(message: string, at: { readonly pos: number; readonly end: number }): void {
    this.errors.push({ message, span: this.span(at) });
  }

  deeper<T>(at: { readonly pos: number; readonly end: number }, otherwise: T, work: () => T): T {
    if (this.#depth >= MAX_TREE) {
      this.#tooDeep(at);
      return otherwise;
    }
    this.#depth += 1;
    const made = work();
    this.#depth -= 1;
    return made;
  }

  reparsed<T>(at: { readonly pos: number; readonly end: number }, otherwise: T, work: () => T): T {
    if (this.#scripts >= this.#deepest) {
      this.#tooDeep(at);
      return otherwise;
    }
    this.#scripts += 1;
    const made = this.deeper(at, otherwise, work);
    this.#scripts -= 1;
    return made;
  }

  /** Expansions are not searched for where the parser would take too long. */
  tooMany(source: { readonly text: string; readonly pos: number; readonly end: number }): boolean {
    const many = this.#deepest === 0 && source.text.includes("$");
    if (many) this.#tooDeep(source);
    return many;
  }

  /** False when the text exceeds the limits: the rest of it is not read. */
  #spend(cost: number, at: { readonly pos: number; readonly end: number }): boolean {
    if (this.#left < 0) return false;
    this.#left -= cost;
    if (this.#left < 0) this.fail("more commands, words and redirects than can be examined", at);
    return this.#left >= 0;
  }

  #tooDeep(at: { readonly pos: number; readonly end: number }): void {
    this.fail("nested too deeply", at);
  }

  whole(script: ParsedScript): List {
    if (script.errors !== undefined)
      for (const { message, pos } of script.errors) this.fail(message, { pos, end: pos + 1 });
    return this.list(script.commands, script);
  }

  list(statements: readonly Statement[], at: { readonly pos: number; readonly end: number }): List {
    const items: List["items"][number][] = [];
    for (const { command, background } of statements) {
      const last = background === true ? "&" : ";";
      if (command.type !== "AndOr") items.push({ node: this.node(command), then: last });
      else {
        const { commands, operators } = command;
        for (let index = 0; index < commands.length; index += 1)
          items.push({ node: this.node(commands[index] as Part), then: operators[index] ?? last });
      }
    }
    const first = items[0]?.node.span[0] ?? at.pos;
    const end = items[items.length - 1]?.node.span[1] ?? at.pos;
    return { kind: "list", span: this.#decoded ?? [first, end], items };
  }

  body = (body: CompoundList): List => this.list(body.commands, body);

  node(source: Part): Node {
    if (source.type === "Command") return this.#simple(source);
    if (source.type !== "Pipeline") return compoundOf(source, this);
    const parts = source.commands.map((part, index) => {
      const node = this.node(part);
      return source.operators[index] === "|&" ? withErrors(node) : node;
    });
    const [only] = parts;
    if (only !== undefined && parts.length === 1) return isNegated(source) ? negated(only) : only;
    return { kind: "pipeline", span: [parts[0]?.span[0] ?? 0, parts.at(-1)?.span[1] ?? 0], parts };
  }

  /** Adds the words that one source word becomes. */
  addWords(source: SourceWord, words: Word[]): void {
    if (!this.#spend(COST.word, source) || this.tooMany(source)) return;
    const plain = plainWord(source);
    if (plain !== null) words.push(this.placed(plain));
    else for (const word of wordsOf(source, this)) words.push(this.placed(word));
  }

  word(source: SourceWord): Word {
    if (this.tooMany(source)) return { span: this.span(source), pieces: [] };
    return this.placed(wordOf(source, this));
  }

  placed(word: Word): Word {
    const [pos, end] = word.span;
    // A span in the parser's tree is kept, unless it does not fit the text.
    const fits = this.#decoded === null && end <= this.#length;
    return fits ? word : { ...word, span: this.span({ pos, end }) };
  }

  redirects(sources: readonly Redirection[]): readonly Redirect[] {
    return sources.flatMap((source) => (this.#spend(COST.redirect, source) ? redirectOf(source, this) : []));
  }

  #simple(source: Command): Simple {
    this.#spend(COST.command, source);
    const words: Word[] = [];
    const { name, prefix, suffix } = source;
    if (name !== undefined) this.addWords(name, words);
    for (const part of suffix)
      if (part.type === "Word") this.addWords(part, words);
      else if (part.type === "Assignment") words.push(this.placed(assignmentAsWord(part, this)));
    const assignments: Assignment[] = [];
    for (const part of prefix) if (part.type === "Assignment") assignments.push(this.#assignment(part));
    const { redirects } = source;
    return {
      kind: "simple",
      span: this.span(source),
      assignments,
      words,
      redirects: redirects.length === 0 ? [] : this.redirects(redirects),
    };
  }

  #assignment(source: SourceAssignment): Assignment {
    const { name, value, append = false, index } = source;
    const plain = value.type === "Word" && index === undefined;
    const others = plain ? [] : this.#items(source);
    return { span: this.span(source), name, value: plain ? this.word(value) : null, append, others };
  }

  /** The words of an array. With a subscript only what runs in it is known. */
  #items(source: SourceAssignment): readonly Word[] {
    const { value, index } = source;
    if (index === undefined && value.type === "ArrayValue" && !value.elements.some(isSubscripted))
      return wordList(value.elements, this);
    return [{ span: this.span(source), pieces: scriptsIn(source, this).map(asPiece) }];
  }

  #substitution(part: ScriptPart): Node {
    if (!this.#spend(COST.substitution, part)) return nothing(this.span(part));
    const { script } = part;
    if (script === undefined || part.text.startsWith("${")) {
      this.fail("an unsupported substitution", part);
      return nothing(this.span(part));
    }
    const outer = this.#decoded;
    if (script.source !== undefined) this.#decoded ??= [part.pos, part.end];
    const list = this.whole(script);
    this.#decoded = outer;
    return list;
  }
}

/** A command of a pipeline or of a list: anything but a list itself. */
type Part = Exclude<Statement["command"], { readonly type: "AndOr" }>;

const isSubscripted = ({ text }: SourceWord): boolean => text.startsWith("[");

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

/** Takes the place of something that could not be read. */
const nothing = (span: Span): List => ({ kind: "list", span, items: [] });

/** `|&`: stderr goes into the pipe as well. */
function withErrors(node: Node): Node {
  if (node.kind !== "simple" && node.kind !== "compound") return node;
  const target: Word = { span: node.span, pieces: [{ kind: "text", text: "1" }] };
  return {
    ...node,
    redirects: [...node.redirects, { span: node.span, operator: ">&", descriptor: 2, target }],
  };
}

/** Bounds on what is read of a text. Beyond them there is an error, so that unread parts never count as harmless. */

/** Nested expansions: each level is parsed again when it is read. */
const MAX_DEPTH = 10;
/** Each level of a long text costs more. */
const LONG_TEXT = 10_000;
const MAX_OF_LONG = 3;
/** Starts of expansions in a long text; with more of them none is read. */
const MAX_EXPANSION_STARTS = 1000;

function deepestFor(text: string): number {
  if (text.length <= LONG_TEXT) return MAX_DEPTH;
  return text.split("$").length > MAX_EXPANSION_STARTS ? 0 : MAX_OF_LONG;
}

/** Nesting of any kind, such as sums of sums. */
const MAX_TREE = 200;

/** Approximate costs of judging, and the budget for one text. */
const COST = { command: 5, word: 2, redirect: 10, substitution: 20 };
const BUDGET = 16_000;

/** Empty where the target is missing: the parser reports that error. */
function redirectOf(source: Redirection, converter: Converter): readonly Redirect[] {
  const span = converter.span(source);
  const descriptor = source.descriptor === undefined ? null : descriptorOf(source.descriptor);
  if (source.type === "HereDoc")
    return [{ span, operator: "<<", descriptor, target: bodyOf(source, converter) }];
  if (source.target === undefined) return [];
  return [{ span, operator: source.operator, descriptor, target: converter.word(source.target) }];
}

const descriptorOf = (descriptor: NonNullable<Redirection["descriptor"]>): number | string =>
  descriptor.type === "FileDescriptor" ? descriptor.value : descriptor.name;

function bodyOf(source: HereDoc, converter: Converter): Word {
  const { body, delimiter, closing, operator } = source;
  if (closing === undefined) converter.fail("an unterminated here-document", source);
  const stripped = operator === "<<-";
  const tabless = (text: string): string => (stripped ? text.replaceAll(/^\t+/gm, "") : text);
  const span = converter.span(body);
  if (delimiter?.quoted === true) return { span, pieces: textPieces(tabless(body.text)) };
  if (converter.tooMany(body)) return { span, pieces: [] };
  if (body.parts === undefined) return { span, pieces: textPieces(unescaped(tabless(body.text))) };
  const pieces = body.parts.flatMap((part) =>
    part.type === "Literal"
      ? textPieces(unescaped(tabless(part.text)))
      : plainPieces(part, { from: 0, quoted: true, read: converter }),
  );
  return { span, pieces: merged(pieces) };
}

/** The meaning of a backslash in a here-document with an unquoted delimiter. */
const unescaped = (text: string): string =>
  text.replaceAll(/\\([\\$`\n])/g, (_, letter: string) => (letter === "\n" ? "" : letter));

type Source = Exclude<CommandNode, { readonly type: "Command" }>;
type Filled = Pick<Compound, "what"> & Partial<Pick<Compound, "name" | "words" | "bodies" | "evaluates">>;

function compoundOf(source: Source, converter: Converter): Node {
  const span = converter.span(source);
  if (source.type === "Redirected") {
    const inner = compoundOf(source.command, converter);
    const redirects = converter.redirects(source.redirects);
    return inner.kind === "compound" ? { ...inner, span, redirects } : inner;
  }
  return {
    kind: "compound",
    span,
    name: null,
    words: null,
    bodies: [],
    redirects: [],
    ...partsOf(source, converter),
  };
}

function partsOf(source: Exclude<Source, { readonly type: "Redirected" }>, converter: Converter): Filled {
  const { body } = converter;
  switch (source.type) {
    case "Subshell":
      return { what: "subshell", bodies: [body(source.body)] };
    case "BraceGroup":
      return { what: "group", bodies: [body(source.body)] };
    case "If": {
      const more = source.elif.flatMap(({ clause, then }) => [body(clause), body(then)]);
      const last = source.else === undefined ? [] : [body(source.else)];
      return { what: "if", bodies: [body(source.clause), body(source.then), ...more, ...last] };
    }
    case "While":
      return { what: source.kind, bodies: [body(source.clause), body(source.body)] };
    case "For":
    case "Select":
      return loopOf(source, converter);
    case "ArithmeticFor": {
      const parts = [source.initialize, source.test, source.update];
      const scripts = parts.flatMap((part) => arithmeticScripts(part, converter));
      return { what: "for", bodies: [...scripts, body(source.body)] };
    }
    case "ArithmeticCommand": {
      return { what: "arithmetic", bodies: arithmeticScripts(source.expression, converter) };
    }
    case "Case": {
      const words = [source.word, ...source.items.flatMap(({ pattern }) => pattern)];
      return {
        what: "case",
        words: words.map((word) => converter.word(word)),
        bodies: source.items.map((item) => body(item.body)),
      };
    }
    case "TestCommand":
      return {
        what: "test",
        words: testWords(source.expression).map((word) => converter.word(word)),
        evaluates: evaluates(source.expression),
      };
    case "Function":
      return { what: "function", name: source.name.value, bodies: [functionBodyOf(source.body, converter)] };
    case "Coproc":
      return {
        what: "coproc",
        name: source.name?.value ?? null,
        bodies: [functionBodyOf(source.body, converter)],
      };
  }
}

/** The expression may be nothing but a substitution, so it is parsed as part of a word. */
function arithmeticScripts(
  expression: ArithmeticExpression | undefined,
  converter: Converter,
): readonly Node[] {
  if (expression === undefined) return [];
  const { pos, end } = expression;
  return scriptsIn({ type: "ArithmeticGroup", pos, end, expression }, converter);
}

function loopOf(source: For | Select, converter: Converter): Filled {
  return {
    what: source.type === "For" ? "for" : "select",
    name: source.name.value,
    words: source.wordlist === undefined ? null : wordList(source.wordlist, converter),
    bodies: [converter.body(source.body)],
  };
}

function wordList(sources: readonly SourceWord[], converter: Converter): readonly Word[] {
  const words: Word[] = [];
  for (const source of sources) converter.addWords(source, words);
  return words;
}

const functionBodyOf = (
  source: Parameters<Converter["node"]>[0] | Parameters<Converter["body"]>[0],
  converter: Converter,
): Node => (source.type === "CompoundList" ? converter.body(source) : converter.node(source));

function testWords(test: TestExpression): readonly SourceWord[] {
  switch (test.type) {
    case "TestUnary":
      return [test.operand];
    case "TestBinary":
      return [test.left, test.right];
    case "TestLogical":
      return test.operands.flatMap(testWords);
    case "TestNot":
      return testWords(test.operand);
    case "TestGroup":
      return testWords(test.expression);
  }
}

const EVALUATING: ReadonlySet<string> = new Set(["-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v", "-R"]);

function evaluates(test: TestExpression): boolean {
  switch (test.type) {
    case "TestUnary":
    case "TestBinary":
      return EVALUATING.has(test.operator);
    case "TestLogical":
      return test.operands.some(evaluates);
    case "TestNot":
      return evaluates(test.operand);
    case "TestGroup":
      return evaluates(test.expression);
  }
}
