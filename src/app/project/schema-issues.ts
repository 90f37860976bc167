import type { ErrorObject } from "ajv/dist/2020.js";

const MAX_ISSUES = 8;

/** What is wrong with the arguments of a call, for the model: the first issues that the validation found. */
export const schemaIssues = (errors: readonly ErrorObject[] | null | undefined): readonly string[] =>
  (errors ?? []).slice(0, MAX_ISSUES).map(issueText);

function issueText({ instancePath, message = "does not fit", params }: ErrorObject): string {
  const at = instancePath.slice(1).replaceAll("/", ".");
  const extra: unknown = Reflect.get(params, "additionalProperty") ?? Reflect.get(params, "allowedValues");
  const more = extra === undefined ? "" : `: ${JSON.stringify(extra)}`;
  return `${at === "" ? "" : `${at}: `}${message}${more}`;
}
