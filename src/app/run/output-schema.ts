import { Ajv2020, type ErrorObject, type ValidateFunction } from "ajv/dist/2020.js";
import type { CheckAnswer } from "../../agent/ending/outcome.ts";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import type { JsonSchema } from "../../core/model-provider.ts";
import { isFields, withoutMark } from "../../core/raw-data.ts";
import { readRegular } from "../../platform/safe-files.ts";

/** In bytes; no schema written by a person is that long. */
const MAX_SCHEMA = 4 * 2 ** 20;

/** Reads a user's JSON Schema, with the check of an answer against it. */
export async function readOutputSchema(
  file: string,
): Promise<{ readonly schema: JsonSchema; readonly check: CheckAnswer }> {
  // The file is read once before the session and once for the run, so a pipe will not do.
  const bytes = await readRegular(file, { links: "follow", max: MAX_SCHEMA }).catch((thrown: unknown) => {
    throw unusable(file, `cannot be read: ${reasonOf(thrown)}`);
  });
  const schema = schemaIn(file, bytes.toString("utf8"));
  const validate = await compiled(file, schema);
  return { schema, check: (answer) => checked(answer, validate) };
}

function schemaIn(file: string, text: string): JsonSchema {
  try {
    const value: unknown = JSON.parse(withoutMark(text));
    if (isFields(value)) return value;
  } catch (thrown) {
    throw unusable(file, `is not valid JSON: ${reasonOf(thrown)}`);
  }
  throw unusable(file, "does not contain a JSON object");
}

type Draft = new (options: object) => Pick<Ajv2020, "compile">;

const draft7 = async (): Promise<Draft> => (await import("ajv")).Ajv;

/** Keyed by `$schema` without `http(s)` and its `#`. Every keyword of draft 6 means the same in draft 7. */
const DRAFTS: Readonly<Record<string, () => Promise<Draft>>> = {
  "json-schema.org/draft-06/schema": draft7,
  "json-schema.org/draft-07/schema": draft7,
  "json-schema.org/draft/2019-09/schema": async () => (await import("ajv/dist/2019.js")).Ajv2019,
  "json-schema.org/draft/2020-12/schema": () => Promise.resolve(Ajv2020),
};

async function compiled(file: string, { $schema = DRAFT, ...schema }: JsonSchema): Promise<ValidateFunction> {
  const draft = typeof $schema === "string" ? DRAFTS[$schema.replaceAll(/^https?:\/\/|#$/g, "")] : undefined;
  if (draft === undefined) throw unusable(file, `uses an unknown draft: ${JSON.stringify($schema)}`);
  // An asynchronous check would return a promise, and any answer would pass.
  if (schema["$async"] === true) throw unusable(file, "uses $async, which is not JSON Schema");
  const Checks = await draft();
  try {
    return new Checks({ allErrors: true, strict: false, validateFormats: false }).compile(schema);
  } catch (thrown) {
    throw unusable(file, `is not a valid JSON Schema: ${reasonOf(thrown)}`);
  }
}

const DRAFT = "https://json-schema.org/draft/2020-12/schema";

const unusable = (file: string, why: string): HarnessError =>
  new HarnessError(
    EXIT.usage,
    `--output-schema: ${file} ${why}`,
    "give a file with a JSON Schema (2020-12, 2019-09, draft 7 or 6)",
  );

/** Models like to fence their JSON: only the inner text is checked and printed. */
function checked(answer: string, validate: ValidateFunction): ReturnType<CheckAnswer> {
  const text = /^```(?:json)?\s*\n([\s\S]*)\n\s*```$/.exec(answer.trim())?.[1] ?? answer.trim();
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (thrown) {
    return { issues: [`it is no JSON: ${reasonOf(thrown)}`] };
  }
  if (validate(value)) return { json: JSON.stringify(value) };
  return { issues: (validate.errors ?? []).slice(0, MAX_ISSUES).map(issue) };
}

const MAX_ISSUES = 8;

const issue = ({ instancePath, message = "does not fit" }: ErrorObject): string =>
  `${instancePath === "" ? "the answer" : instancePath} ${message}`;
