import { Ajv2020, type ErrorObject, type ValidateFunction } from "ajv/dist/2020.js";
import { reasonOf } from "../../core/errors.ts";
import type { JsonSchema } from "../../core/model-provider.ts";
import type { AnyTool, Facts, InvalidCall } from "../../core/tool.ts";
import type { McpServer } from "../../extensions/mcp/connected-server.ts";
import type { OfferedTool } from "../../extensions/mcp/tool-catalogue.ts";

/** A server's tool as any other: its arguments are held to its schema, and its call is judged before it is asked. */
export function mcpTool(
  { name, own, description, schema, check }: OfferedTool,
  server: McpServer,
  facts: Facts,
): AnyTool {
  const issuesIn = checkBy(check);
  return {
    name,
    description: description === "" ? `A tool of the MCP server ${server.name}.` : description,
    schema,
    prepare: (args) => {
      const given = args ?? {};
      const issues = issuesIn(given);
      if (issues.length > 0) return { kind: "invalid", issues } satisfies InvalidCall;
      return {
        kind: "prepared",
        state: () => ({
          facts,
          run: async (box, signal) => {
            if (facts.program === "box") await box();
            return server.call(own, given, signal);
          },
        }),
        concurrent: false,
        bounded: false,
      };
    },
  };
}

const MAX_ISSUES = 8;

/** What a schema says against a value. It is read when it is first wanted: most tools are never called. */
function checkBy(schema: JsonSchema): (value: unknown) => readonly string[] {
  const held: { validate?: ValidateFunction } = {};
  return (value) => {
    try {
      held.validate ??= new Ajv2020({ allErrors: false, strict: false, validateFormats: false }).compile(
        schema,
      );
    } catch (thrown) {
      return [`its own schema cannot be read, so nothing can be said to it: ${reasonOf(thrown)}`];
    }
    if (held.validate(value)) return [];
    return (held.validate.errors ?? []).slice(0, MAX_ISSUES).map(issueOf);
  };
}

function issueOf({ instancePath, message = "does not fit", params }: ErrorObject): string {
  const at = instancePath.slice(1).replaceAll("/", ".");
  const extra: unknown = Reflect.get(params, "additionalProperty") ?? Reflect.get(params, "allowedValues");
  const more = extra === undefined ? "" : `: ${JSON.stringify(extra)}`;
  return `${at === "" ? "" : `${at}: `}${message}${more}`;
}
