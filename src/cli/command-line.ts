import { existsSync } from "node:fs";
import path from "node:path";
import { Config, type Hook, run } from "@oclif/core";
import { describeFailure, renderFailure } from "../app/stderr-messages.ts";
import { packageRoot } from "../app/host.ts";
import { EXIT } from "../core/errors.ts";
import { stdout } from "../render/tty/output.ts";
import type { HarnessCommand } from "./command.ts";
import type { LoadFile } from "../app/compiled-code.ts";

/** Runs one command line to its exit code; every failure is printed here and nowhere else. */
export async function runCli(given: readonly string[], load: LoadFile): Promise<void> {
  const words = routed(given);
  const options = beforeDashes(words);
  if (options.includes("--no-color")) withoutColor();
  process.once("uncaughtException", (thrown) => {
    renderFailure(describeFailure(thrown, options), options.includes("--json"));
    void recorded(thrown, EXIT.failed).finally(() => process.exit(EXIT.failed));
  });
  try {
    const command = options.some((word) => HELP.has(word)) ? undefined : commandOf(words, load);
    await (command?.perform() ?? run([...words], { root: packageRoot }));
    await stdout.allTaken();
  } catch (thrown) {
    const failure = describeFailure(thrown, options);
    if (failure.message !== "") renderFailure(failure, options.includes("--json"));
    process.exitCode = failure.exit;
    if (failure.message !== "") await recorded(thrown, failure.exit);
  }
}

/** For who has to find out why; a failure to do so changes nothing. */
async function recorded(thrown: unknown, exit: number): Promise<void> {
  try {
    const { recordFailure } = await import("../app/diagnostics.ts");
    recordFailure(thrown, exit);
  } catch {
    // It has been said, and the exit code stands.
  }
}

/** What stands behind `--` is never an option. */
function beforeDashes(words: readonly string[]): readonly string[] {
  const dashes = words.indexOf("--");
  return dashes === -1 ? words : words.slice(0, dashes);
}

/** The flag goes before FORCE_COLOR, and counts where no command is found too. */
function withoutColor(): void {
  delete process.env["FORCE_COLOR"];
  process.env["NO_COLOR"] = "1";
}

type CommandClass = (new (argv: string[], config: Config) => HarnessCommand) & typeof HarnessCommand;

const NAME = /^[a-z]+$/;
/** How the file is called of a command that is a folder of files, too. */
const INDEX = "index";

const HELP: ReadonlySet<string> = new Set(["--help", "-h"]);
const OF_THE_PROGRAM: ReadonlySet<string> = new Set([...HELP, "--version"]);

/** What a command asks of oclif's configuration. To load it whole takes a table of all commands, which help alone has a use for. */
class OneCommand extends Config {
  override bin = "harness";
  override topicSeparator = " " as const;

  /** No plugin is there to answer. */
  override runHook(): Promise<Hook.Result<never>> {
    return Promise.resolve({ successes: [], failures: [] });
  }
}

/** The command that the first words name, and its file in the bundle; undefined for topics and what is unknown: oclif's to say. */
function commandOf(words: readonly string[], load: LoadFile): HarnessCommand | undefined {
  const [first = "", second = ""] = words;
  const ways = [
    { id: [first, second], file: [first, second] },
    { id: [first], file: [first] },
    { id: [first], file: [first, INDEX] },
  ];
  for (const { id, file } of ways) {
    if (!id.every((word) => NAME.test(word)) || id[1] === INDEX) continue;
    const found = `${path.join(packageRoot, "dist/commands", ...file)}.cjs`;
    if (!existsSync(found)) continue;
    const classes = Object.values(load(found) as Record<string, CommandClass>);
    const made = classes.find((each) => typeof each.run === "function");
    if (made === undefined) throw new Error(`${found} holds no command`);
    made.id = id.join(":");
    return new made(words.slice(id.length), new OneCommand({ root: packageRoot }));
  }
  return undefined;
}

/** The command that words without one mean: the chat with these options, of sessions their list. */
export function routed(words: readonly string[]): readonly string[] {
  const [first] = words;
  if (first === undefined) return ["chat"];
  if (first === "help") return [...words.slice(1), "--help"];
  if (first === "sessions" && words[1]?.startsWith("-") === true && !HELP.has(words[1]))
    return [first, "list", ...words.slice(1)];
  if (!first.startsWith("-") || first === "--" || OF_THE_PROGRAM.has(first)) return words;
  return ["chat", ...words];
}
