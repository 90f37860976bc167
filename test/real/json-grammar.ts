/** Converts a JSON schema into a GBNF grammar, as llama.cpp's servers do to constrain a reply. */

type Schema = Readonly<Record<string, unknown>>;

/** A schema that cannot become a grammar: a server answers it with 400. */
export class SchemaRefused extends Error {}

/** Whitespace is bounded: a small model may produce it for ever. */
const GIVEN = [
  "space ::= [ ]?",
  String.raw`char ::= [^"\\\x7F\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4})`,
  String.raw`string ::= "\"" char* "\""`,
  String.raw`integer ::= "-"? ("0" | [1-9] [0-9]{0,15})`,
  String.raw`number ::= integer ("." [0-9]{1,16})? ([eE] [-+]? [0-9]{1,3})?`,
  `boolean ::= "true" | "false"`,
  `null ::= "null"`,
  `value ::= object | array | string | number | boolean | null`,
  String.raw`member ::= string space ":" space value`,
  `object ::= "{" space (member (space "," space member)*)? space "}"`,
  `array ::= "[" space (value (space "," space value)*)? space "]"`,
] as const;

/** Keywords that restrict values further; the grammar ignores them and is wider than the schema. */
const WIDER: ReadonlySet<string> = new Set(
  "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf pattern format minLength maxLength minItems maxItems minProperties maxProperties uniqueItems propertyNames".split(
    " ",
  ),
);
const ABOUT: ReadonlySet<string> = new Set([
  "description",
  "title",
  "default",
  "examples",
  "$schema",
  "$defs",
  "definitions",
  "$id",
  "$comment",
]);
const READ: ReadonlySet<string> = new Set([
  "type",
  "properties",
  "required",
  "additionalProperties",
  "items",
  "enum",
  "const",
  "anyOf",
  "oneOf",
  "$ref",
]);

const PLAIN: ReadonlySet<string> = new Set(["string", "integer", "number", "boolean", "null"]);

/** The grammar of any JSON object. */
export const ANY_OBJECT = ["root ::= object", ...GIVEN].join("\n");

/** The grammar of values that fit `schema`; throws `SchemaRefused`. */
export function grammarOf(schema: Schema): string {
  const rules = new Rules(schema);
  const root = rules.of(schema);
  return [`root ::= ${root}`, ...rules.lines, ...GIVEN].join("\n");
}

class Rules {
  readonly #root: Schema;
  readonly #named = new Map<string, string>();
  readonly lines: string[] = [];

  constructor(root: Schema) {
    this.#root = root;
  }

  /** The expression for a value of this schema; long ones get a rule of their own. */
  of(schema: unknown): string {
    if (schema === true || schema === undefined) return "value";
    if (typeof schema !== "object" || schema === null)
      throw new SchemaRefused("a schema is an object or true");
    const fields = schema as Schema;
    const strange = Object.keys(fields).find((key) => ![READ, WIDER, ABOUT].some((known) => known.has(key)));
    if (strange !== undefined) throw new SchemaRefused(`no grammar is made of "${strange}"`);
    if (typeof fields["$ref"] === "string") return this.#referred(fields["$ref"]);
    if ("const" in fields) return literal(fields["const"]);
    if (Array.isArray(fields["enum"])) return oneOf(fields["enum"].map(literal));
    const choice = fields["anyOf"] ?? fields["oneOf"];
    if (Array.isArray(choice)) return oneOf(choice.map((each) => this.of(each)));
    return this.#typed(fields);
  }

  #typed(schema: Schema): string {
    const { type } = schema;
    if (Array.isArray(type)) return oneOf(type.map((each: unknown) => this.of({ ...schema, type: each })));
    if (type === "object" || (type === undefined && schema["properties"] !== undefined))
      return this.#object(schema);
    if (type === "array") return this.#rule(listOf(this.of(schema["items"]), "[", "]"));
    if (type === undefined) return "value";
    if (typeof type === "string" && PLAIN.has(type)) return type;
    throw new SchemaRefused(`no grammar is made of the type ${JSON.stringify(type)}`);
  }

  /** Properties come in the order of the schema; those not required may be absent. */
  #object(schema: Schema): string {
    const properties = Object.entries((schema["properties"] ?? {}) as Schema);
    const others = schema["additionalProperties"];
    if (properties.length === 0)
      return others === false ? `"{" space "}"` : this.#rule(listOf(this.#other(others), "{", "}"));
    const required = new Set(Array.isArray(schema["required"]) ? schema["required"].map(String) : []);
    const members = properties.map(([name, value]) => ({
      text: this.#rule(`${literal(name)} space ":" space ${this.of(value)}`),
      needed: required.has(name),
    }));
    return this.#rule(`"{" space ${this.#members(members)} space "}"`);
  }

  #other(schema: unknown): string {
    return schema === undefined || schema === true ? "member" : `string space ":" space ${this.of(schema)}`;
  }

  /** Members in order: a comma precedes each one but the first that is present. */
  #members(members: readonly { readonly text: string; readonly needed: boolean }[]): string {
    const tails: string[] = [];
    let tail = "";
    for (const { text, needed } of members.toReversed()) {
      tails.unshift(tail);
      const part = `space "," space ${text}`;
      tail = `${needed ? part : `(${part})?`}${tail === "" ? "" : ` ${tail}`}`;
      if (tail.length > 200) tail = this.#rule(tail);
    }
    const starts: string[] = [];
    for (const [at, { text, needed }] of members.entries()) {
      starts.push(`${text} ${tails[at] ?? ""}`.trim());
      if (needed) return oneOf(starts);
    }
    return `${oneOf(starts)}?`;
  }

  #referred(ref: string): string {
    const known = this.#named.get(ref);
    if (known !== undefined) return known;
    const found = ref
      .replace(/^#\/?/, "")
      .split("/")
      .filter((step) => step !== "")
      .reduce<unknown>((at, step) => (at as Schema | undefined)?.[step], this.#root);
    if (!ref.startsWith("#") || found === undefined) throw new SchemaRefused(`nothing is at ${ref}`);
    // Registered before it is built: it may refer to itself.
    const name = `ref${this.#named.size}`;
    this.#named.set(ref, name);
    this.lines.push(`${name} ::= ${this.of(found)}`);
    return name;
  }

  #rule(body: string): string {
    const name = `rule${this.lines.length}`;
    this.lines.push(`${name} ::= ${body}`);
    return name;
  }
}

const listOf = (item: string, open: string, close: string): string =>
  `"${open}" space (${item} (space "," space ${item})*)? space "${close}"`;

const oneOf = (choices: readonly string[]): string => {
  if (choices.length === 0) throw new SchemaRefused("nothing to choose from");
  return `(${choices.join(" | ")})`;
};

/** JSON text as a GBNF terminal. */
const literal = (value: unknown): string => JSON.stringify(JSON.stringify(value));
