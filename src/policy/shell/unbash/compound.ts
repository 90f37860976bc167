import type {
  ArithmeticExpression,
  CommandNode,
  For,
  Select,
  TestExpression,
  Word as SourceWord,
} from "unbash";
import type { Compound, Node } from "../syntax.ts";
import type { Converter } from "./read.ts";
import { scriptsIn } from "./words.ts";

type Source = Exclude<CommandNode, { readonly type: "Command" }>;
type Filled = Pick<Compound, "what"> & Partial<Pick<Compound, "name" | "words" | "bodies" | "evaluates">>;

export function compoundOf(source: Source, converter: Converter): Node {
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
      return { what: "function", name: source.name.value, bodies: [bodyOf(source.body, converter)] };
    case "Coproc":
      return { what: "coproc", name: source.name?.value ?? null, bodies: [bodyOf(source.body, converter)] };
  }
}

/** The expression may be nothing but a substitution, so it is looked for as a part of something. */
function arithmeticScripts(
  expression: ArithmeticExpression | undefined,
  converter: Converter,
): readonly Node[] {
  if (expression === undefined) return [];
  const { pos, end } = expression;
  return scriptsIn({ type: "ArithmeticGroup", pos, end, expression }, converter.inner);
}

function loopOf(source: For | Select, converter: Converter): Filled {
  return {
    what: source.type === "For" ? "for" : "select",
    name: source.name.value,
    words: source.wordlist?.flatMap((word) => converter.words(word)) ?? null,
    bodies: [converter.body(source.body)],
  };
}

const bodyOf = (
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
