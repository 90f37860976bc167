import { Ajv2020, type ErrorObject, type ValidateFunction } from "ajv/dist/2020.js";
import * as z from "zod";
import { reasonOf } from "../../core/errors.ts";
import type { JsonSchema } from "../../core/model-provider.ts";
import {
  type AnyTool,
  anyTool,
  type Facts,
  type InvalidCall,
  NO_FACTS,
  type Tool,
  type ToolResult,
} from "../../core/tool.ts";
import type { McpServer } from "../../extensions/mcp-client.ts";
import type { OfferedTool } from "../../extensions/tool-catalogue.ts";

/** Resources and prompts of servers: one tool each for all servers together, and none if no server has any. */

interface Offering {
  readonly server: McpServer;
  readonly facts: Facts;
}

export function offeredExtras(all: readonly Offering[]): readonly AnyTool[] {
  const [resources, prompts] = (["resources", "prompts"] as const).map((what) =>
    all.filter(({ server }) => server.offers(what)),
  );
  return [
    ...(resources === undefined || resources.length === 0 ? [] : [anyTool(resourceTool(resources))]),
    ...(prompts === undefined || prompts.length === 0 ? [] : [anyTool(promptTool(prompts))]),
  ];
}

const namesOf = (all: readonly Offering[]): string => all.map(({ server }) => server.name).join(", ");

const serverOf = (all: readonly Offering[]) =>
  z.string().refine((name) => all.some(({ server }) => server.name === name), {
    error: `there is no such server; there are: ${namesOf(all)}`,
  });

const find = (all: readonly Offering[], name: string): Offering | undefined =>
  all.find(({ server }) => server.name === name);

const NOWHERE: ToolResult = { kind: "failed", cause: "program", text: "There is no such server." };

function resourceTool(
  all: readonly Offering[],
): Tool<{ readonly server: string; readonly uri?: string | undefined }> {
  return {
    name: "mcp_resource",
    description: `Read a resource of an MCP server (${namesOf(all)}); without uri, list them.`,
    input: z.strictObject({ server: serverOf(all), uri: z.string().max(4000).optional() }),
    concurrent: false,
    where: "session",
    facts: ({ server }) => find(all, server)?.facts ?? NO_FACTS,
    run: async ({ server, uri }, signal) => {
      const found = find(all, server)?.server;
      if (found === undefined) return NOWHERE;
      return uri === undefined
        ? found.ask("resources/list", {}, signal)
        : found.ask("resources/read", { uri }, signal);
    },
  };
}

interface PromptRequest {
  readonly server: string;
  readonly name?: string | undefined;
  readonly arguments?: Readonly<Record<string, string>> | undefined;
}

function promptTool(all: readonly Offering[]): Tool<PromptRequest> {
  return {
    name: "mcp_prompt",
    description: `Get a prompt text that an MCP server keeps (${namesOf(all)}); without name, list them.`,
    input: z.strictObject({
      server: serverOf(all),
      name: z.string().max(400).optional(),
      arguments: z.record(z.string(), z.string()).optional(),
    }),
    concurrent: false,
    where: "session",
    facts: ({ server }) => find(all, server)?.facts ?? NO_FACTS,
    run: async ({ server, name, arguments: values = {} }, signal) => {
      const found = find(all, server)?.server;
      if (found === undefined) return NOWHERE;
      return name === undefined
        ? found.ask("prompts/list", {}, signal)
        : found.ask("prompts/get", { name, arguments: values }, signal);
    },
  };
}

/** Wraps a server's tool: its arguments are checked against its schema, and the call is judged before it is sent. */
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

/** Checks values against a schema, which is compiled on first use: most tools are never called. */
function checkBy(schema: JsonSchema): (value: unknown) => readonly string[] {
  const held: { validate?: ValidateFunction } = {};
  return (value) => {
    try {
      held.validate ??= new Ajv2020({ allErrors: false, strict: false, validateFormats: false }).compile(
        schema,
      );
    } catch (thrown) {
      return [`its own schema cannot be read, so it cannot be called: ${reasonOf(thrown)}`];
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
