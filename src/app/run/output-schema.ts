import { Ajv2020, type ErrorObject, type ValidateFunction } from "ajv/dist/2020.js";
import type { CheckAnswer } from "../../agent/ending/final-answer.ts";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import type { JsonSchema } from "../../core/model-provider.ts";
import { readRegular } from "../../platform/safe-files.ts";

/** In bytes; no schema that a person wrote is as long. */
const MAX_SCHEMA = 4 * 2 ** 20;

/** A user's JSON Schema and what it says of an answer. */
export async function readOutputSchema(
  file: string,
): Promise<{ readonly schema: JsonSchema; readonly check: CheckAnswer }> {
  // Read once before the session and once for the run, so that a pipe will not do.
  const bytes = await readRegular(file, { links: "follow", max: MAX_SCHEMA }).catch((thrown: unknown) => {
    throw unusable(file, `cannot be read: ${reasonOf(thrown)}`);
  });
  const schema = schemaIn(file, bytes.toString("utf8"));
  const ajv = new Ajv2020({ allErrors: true, strict: false, validateFormats: false });
  const validate = compiled(file, () => ajv.compile(schema));
  return { schema, check: (answer) => checked(answer, validate) };
}

function schemaIn(file: string, text: string): JsonSchema {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as JsonSchema;
  } catch (thrown) {
    throw unusable(file, `is no JSON: ${reasonOf(thrown)}`);
  }
  throw unusable(file, "holds no JSON object");
}

function compiled(file: string, compile: () => ValidateFunction): ValidateFunction {
  try {
    return compile();
  } catch (thrown) {
    throw unusable(file, `is no JSON Schema: ${reasonOf(thrown)}`);
  }
}

const unusable = (file: string, why: string): HarnessError =>
  new HarnessError(EXIT.usage, `--output-schema: ${file} ${why}`, "give a file with a JSON Schema (2020-12)");

/** Models like fences around their JSON; what is inside counts, and is what goes out. */
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
