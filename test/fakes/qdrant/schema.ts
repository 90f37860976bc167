import { readFileSync } from "node:fs";
import path from "node:path";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";

/**
 * Checks against the published schema of Qdrant's API. Requests must match strictly: an unknown field is a violation,
 * though a server may ignore it. Answers must match too.
 */

type Schema = { readonly [key: string]: unknown };

interface Operation {
  readonly operationId: string;
  readonly parameters?: readonly { name: string; in: string; required?: boolean; schema: Schema }[];
  readonly requestBody?: { readonly content: { readonly "application/json": { readonly schema: Schema } } };
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { schema: Schema }>> }>
  >;
}

interface Published {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

export interface Match {
  readonly operation: string;
  readonly collection: string;
  readonly method: string;
  readonly route: string;
}

const FILE = path.join(import.meta.dirname, "../../fixtures/qdrant/openapi-1.19.json");
const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;

export class PublishedApi {
  readonly #published = JSON.parse(readFileSync(FILE, "utf8")) as Published;
  readonly #ajv = new Ajv2020({ strict: false, allErrors: false });
  readonly #checks = new Map<string, ValidateFunction>();

  constructor() {
    this.#ajv.addFormat("uuid", UUID);
    for (const format of ["uint", "uint8", "uint64", "int64", "float", "double", "date-time"])
      this.#ajv.addFormat(format, true);
    this.#ajv.addFormat("uint32", { type: "number", validate: (value) => value >= 0 && value <= 0xffffffff });
    const { schemas } = this.#published.components;
    for (const closed of [true, false])
      this.#ajv.addSchema(
        {
          $defs: Object.fromEntries(
            Object.entries(schemas).map(([name, schema]) => [name, asJsonSchema(schema, closed)]),
          ),
        },
        closed ? "sent" : "answered",
      );
  }

  /** The operation at this address, or undefined. */
  match(method: string, pathname: string): Match | undefined {
    const parts = pathname.split("/");
    for (const [route, operations] of Object.entries(this.#published.paths)) {
      const wanted = route.split("/");
      const fits =
        wanted.length === parts.length &&
        wanted.every((part, at) => (part.startsWith("{") ? parts[at] !== "" : part === parts[at]));
      const operation = fits ? operations[method.toLowerCase()] : undefined;
      if (operation === undefined) continue;
      const collection = decodeURIComponent(parts[wanted.indexOf("{collection_name}")] ?? "");
      return { operation: operation.operationId, collection, method: method.toLowerCase(), route };
    }
    return undefined;
  }

  /** The violation in a request, or undefined. */
  breachOfRequest(match: Match, query: URLSearchParams, body: unknown): string | undefined {
    const { parameters = [], requestBody } = this.#operation(match);
    const known = parameters.filter((parameter) => parameter.in === "query");
    for (const [name, text] of query) {
      const parameter = known.find((one) => one.name === name);
      if (parameter === undefined) return `no parameter ${name}`;
      const key = `${match.operation} ?${name}`;
      const why = this.#breach(key, parameter.schema, { value: plain(text), closed: true });
      if (why !== undefined) return `${name}=${text}: ${why}`;
    }
    const schema = requestBody?.content["application/json"].schema;
    if (schema === undefined) return body === undefined ? undefined : "no body is taken";
    return this.#breach(`${match.operation} request`, schema, { value: body, closed: true });
  }

  breachOfAnswer(match: Match, status: number, body: unknown): string | undefined {
    const { responses } = this.#operation(match);
    const answer =
      responses[String(status)] ?? responses[status < 500 ? "4XX" : "default"] ?? responses["default"];
    const schema = answer?.content?.["application/json"]?.schema;
    if (schema === undefined) return undefined;
    return this.#breach(`${match.operation} ${status}`, schema, { value: body, closed: false });
  }

  #operation({ route, method }: Match): Operation {
    const operation = this.#published.paths[route]?.[method];
    if (operation === undefined) throw new Error(`no ${method} ${route} in the schema`);
    return operation;
  }

  #breach(
    key: string,
    schema: Schema,
    of: { readonly value: unknown; readonly closed: boolean },
  ): string | undefined {
    const check = this.#checks.get(key) ?? this.#ajv.compile(asJsonSchema(schema, of.closed) as object);
    this.#checks.set(key, check);
    if (check(of.value)) return undefined;
    return this.#ajv.errorsText(check.errors, { dataVar: "" });
  }
}

const plain = (text: string): unknown => (/^(?:true|false|\d+)$/.test(text) ? JSON.parse(text) : text);

/** OpenAPI 3.0 says `nullable` where JSON Schema says null. */
function asJsonSchema(value: unknown, closed: boolean): unknown {
  if (Array.isArray(value)) return value.map((item) => asJsonSchema(item, closed));
  if (typeof value !== "object" || value === null) return value;
  const { nullable, ...schema } = value as Schema;
  const inner: Record<string, unknown> = Object.fromEntries(
    Object.entries(schema).map(([key, part]) => [
      key,
      key === "$ref"
        ? String(part).replace("#/components/schemas/", `${closed ? "sent" : "answered"}#/$defs/`)
        : asJsonSchema(part, closed),
    ]),
  );
  if (closed && "properties" in inner && !("additionalProperties" in inner))
    inner["additionalProperties"] = false;
  if (nullable !== true) return inner;
  if (Object.keys(inner).length === 0) return { type: "null" };
  return { anyOf: [inner, { type: "null" }] };
}
