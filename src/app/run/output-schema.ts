import type { ErrorObject } from "ajv/dist/2020.js";
import type { CheckAnswer } from "../../agent/ending/outcome.ts";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import type { JsonSchema } from "../../core/model-provider.ts";
import { isFields, withoutMark } from "../../core/raw-data.ts";
import { compiledSchema } from "../json-schema.ts";
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
  const issuesOf = await compiled(file, schema);
  return { schema, check: (answer) => checkAnswer(answer, issuesOf) };
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

async function compiled(file: string, schema: JsonSchema): ReturnType<typeof compiledSchema> {
  try {
    return await compiledSchema(schema, { allErrors: true });
  } catch (thrown) {
    throw unusable(file, reasonOf(thrown));
  }
}

const unusable = (file: string, why: string): HarnessError =>
  new HarnessError(
    EXIT.usage,
    `--output-schema: ${file} ${why}`,
    "give a file with a JSON Schema (2020-12, 2019-09, draft 7 or 6)",
  );

/** Models like to fence their JSON: only the inner text is checked and printed. */
function checkAnswer(
  answer: string,
  errorsOf: Awaited<ReturnType<typeof compiledSchema>>,
): ReturnType<CheckAnswer> {
  const text = /^```(?:json)?\s*\n([\s\S]*)\n\s*```$/.exec(answer.trim())?.[1] ?? answer.trim();
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (thrown) {
    return { issues: [`it is no JSON: ${reasonOf(thrown)}`] };
  }
  const errors = errorsOf(value);
  if (errors.length === 0) return { json: JSON.stringify(value) };
  return { issues: errors.slice(0, MAX_ISSUES).map(issue) };
}

const MAX_ISSUES = 8;

const issue = ({
  instancePath,
  message = "does not fit",
}: Pick<ErrorObject, "instancePath" | "message">): string =>
  `${instancePath === "" ? "the answer" : instancePath} ${message}`;
