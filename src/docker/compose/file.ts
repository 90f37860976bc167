import { parseDocument } from "yaml";
import type { ZodError } from "zod";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { type ComposeProject, composeSchema } from "./schema.ts";

export interface ComposeFile extends ComposeProject {
  /** Where the text came from; `docker compose` is given this path. */
  readonly path: string;
}

/** The services of a compose file. Whatever is not understood ends here, with file and key. */
export function parseComposeFile(text: string, path: string): ComposeFile {
  const value = withoutVariables(yamlValue(text, path), [], path);
  const parsed = composeSchema.safeParse(value);
  if (parsed.success) return { ...parsed.data, path };
  throw firstIssue(parsed.error, value, path);
}

function yamlValue(text: string, path: string): unknown {
  const document = parseDocument(text);
  const [problem] = [...document.errors, ...document.warnings];
  if (problem !== undefined)
    throw composeError(path, problem.message.split("\n", 1)[0]?.replace(/:$/, "") ?? "is no YAML");
  try {
    return document.toJS() as unknown;
  } catch (thrown) {
    throw composeError(path, reasonOf(thrown));
  }
}

/** Both ways of starting must see the same values, so a variable is refused; `$$` is a dollar sign. */
function withoutVariables(value: unknown, keys: readonly PropertyKey[], path: string): unknown {
  if (typeof value === "string") {
    const plain = value.replaceAll("$$", "");
    if (plain.includes("$"))
      throw composeError(path, `${dotted(keys)}: variables are not supported; write the value, or $$ for $`);
    return value.replaceAll("$$", () => "$");
  }
  if (Array.isArray(value))
    return value.map((entry: unknown, index) => withoutVariables(entry, [...keys, index], path));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, entry]) => [key, withoutVariables(entry, [...keys, key], path)]),
  );
}

function firstIssue(error: ZodError, value: unknown, path: string): HarnessError {
  const unknownKey = error.issues.find(({ code }) => code === "unrecognized_keys");
  if (unknownKey?.code === "unrecognized_keys") {
    const keys = [...unknownKey.path, unknownKey.keys[0] ?? ""];
    return composeError(path, `${dotted(keys)}: harness does not know this key`);
  }
  const [issue] = error.issues;
  if (issue === undefined) return composeError(path, "is not valid");
  if (issue.code === "invalid_key")
    return composeError(path, `${dotted(issue.path)}: expected a name of letters, digits, _ . and -`);
  const found = JSON.stringify(valueAt(value, issue.path)) ?? "nothing";
  return composeError(path, `${dotted(issue.path)}: ${sentence(issue)}, found ${found.slice(0, 80)}`);
}

const sentence = (issue: { readonly code: string; readonly message: string }): string =>
  issue.message.startsWith("expected") ? issue.message : "expected a map";

const dotted = (keys: readonly PropertyKey[]): string => keys.map(String).join(".") || "(top)";

const valueAt = (value: unknown, keys: readonly PropertyKey[]): unknown =>
  keys.reduce<unknown>(
    (inner, key) =>
      typeof inner === "object" && inner !== null
        ? (inner as Readonly<Record<PropertyKey, unknown>>)[key]
        : undefined,
    value,
  );

const composeError = (path: string, message: string): HarnessError =>
  new HarnessError(EXIT.usage, `${path}: ${message}`, `mend ${path}`);
