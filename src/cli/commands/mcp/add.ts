import { Args, Flags } from "@oclif/core";
import { addServer } from "../../../config/config-edit.ts";
import { answer, answerJson, HarnessCommand } from "../../command.ts";
import { EXIT, HarnessError } from "../../../core/errors.ts";

export class McpAdd extends HarnessCommand {
  static override summary = "Add an MCP server to your config file.";
  static override description =
    "The words after -- are the server's command, which is started in the box of each run unless you give --no-sandbox. With --url, the server is asked over HTTP. Values may name your environment variables: ${NAME}, ${NAME:-default}. An existing server of the same name is replaced. Nothing is started; `harness mcp test NAME` does that.";
  static override usage = "mcp add NAME [FLAGS] -- CMD...";
  static override args = {
    name: Args.string({
      required: true,
      description: "server name; its tools are called NAME__TOOL",
      ignoreStdin: true,
    }),
  };
  static override flags = {
    url: Flags.string({ description: "address of the server, instead of a command", helpValue: "URL" }),
    env: Flags.string({
      multiple: true,
      multipleNonGreedy: true,
      description: "environment variable for the server",
      helpValue: "NAME=VALUE",
    }),
    header: Flags.string({
      multiple: true,
      multipleNonGreedy: true,
      description: "with --url: header to send",
      helpValue: "NAME=VALUE",
    }),
    folder: Flags.string({
      description: "folder in which the server is started, relative to the workspace",
      helpValue: "DIR",
    }),
    "no-sandbox": Flags.boolean({ description: "start the server on this machine itself, not in the box" }),
    allow: Flags.string({
      multiple: true,
      multipleNonGreedy: true,
      description: "offer only these tools",
      helpValue: "GLOB",
    }),
    deny: Flags.string({
      multiple: true,
      multipleNonGreedy: true,
      description: "offer none of these tools",
      helpValue: "GLOB",
    }),
  };
  static override examples = [
    "harness mcp add files -- node_modules/.bin/mcp-server-filesystem .",
    "harness mcp add tickets --url https://mcp.example.org/mcp --header 'Authorization=Bearer ${TICKETS_TOKEN}'",
  ];

  async run(): Promise<void> {
    const dashes = this.argv.indexOf("--");
    const words = dashes === -1 ? [] : this.argv.slice(dashes + 1);
    const { args, flags } = await this.parse(McpAdd, dashes === -1 ? this.argv : this.argv.slice(0, dashes));
    const { url, env, header, folder, allow, deny } = flags;
    if ((words.length === 0) === (url === undefined))
      throw new HarnessError(
        EXIT.usage,
        url === undefined
          ? `${args.name} needs a command or an address`
          : `${args.name} cannot be both a command and an address`,
        `harness mcp add ${args.name} -- CMD...   (or --url URL)`,
      );
    const tools = { ...(allow === undefined ? {} : { allow }), ...(deny === undefined ? {} : { deny }) };
    const server = {
      ...(words.length === 0 ? {} : { command: words }),
      ...(url === undefined ? {} : { url }),
      ...(env === undefined ? {} : { env: pairs(env) }),
      ...(header === undefined ? {} : { headers: pairs(header) }),
      ...(folder === undefined ? {} : { cwd: folder }),
      ...(flags["no-sandbox"] ? { sandbox: false } : {}),
      ...(Object.keys(tools).length === 0 ? {} : { tools }),
    };
    const [file] = this.host.places.configFiles;
    await addServer(file, args.name, server);
    if (flags.json) answerJson({ name: args.name, file });
    else answer(`${args.name} is set in ${file}; next: harness mcp test ${args.name}`);
  }
}

function pairs(texts: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    texts.map((text) => {
      const at = text.indexOf("=");
      if (at < 1)
        throw new HarnessError(
          EXIT.usage,
          "a variable or header must have the form NAME=VALUE",
          "harness mcp add --help",
        );
      return [text.slice(0, at), text.slice(at + 1)];
    }),
  );
}
