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

/** Records the failure for diagnosis; a failure to do so changes nothing. */
async function recorded(thrown: unknown, exit: number): Promise<void> {
  try {
    const { recordFailure } = await import("../app/diagnostics.ts");
    recordFailure(thrown, exit);
  } catch {
    // The failure was already reported, and the exit code stands.
  }
}

/** Words after `--` are never options. */
function beforeDashes(words: readonly string[]): readonly string[] {
  const dashes = words.indexOf("--");
  return dashes === -1 ? words : words.slice(0, dashes);
}

/** The flag overrides FORCE_COLOR, and counts even if no command is found. */
function withoutColor(): void {
  delete process.env["FORCE_COLOR"];
  process.env["NO_COLOR"] = "1";
}

type CommandClass = (new (argv: string[], config: Config) => HarnessCommand) & typeof HarnessCommand;

const NAME = /^[a-z]+$/;
/** File name of a command that is also a folder of commands. */
const INDEX = "index";

const HELP: ReadonlySet<string> = new Set(["--help", "-h"]);
const PROGRAM_FLAGS: ReadonlySet<string> = new Set([...HELP, "--version"]);

/**
 * The part of oclif's configuration that a command needs. The whole configuration needs a table of all commands, which
 * only the help uses.
 */
class OneCommand extends Config {
  override bin = "harness";
  override topicSeparator = " " as const;

  /** There are no plugins to answer. */
  override runHook(): Promise<Hook.Result<never>> {
    return Promise.resolve({ successes: [], failures: [] });
  }
}

/**
 * The command that the first words name, loaded from its file in the bundle; undefined for topics and unknown words,
 * which oclif handles.
 */
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

/** Adds the command that is implied: the chat for options alone, the list for `sessions` with options. */
export function routed(words: readonly string[]): readonly string[] {
  const [first] = words;
  if (first === undefined) return ["chat"];
  if (first === "help") return [...words.slice(1), "--help"];
  if (first === "sessions" && words[1]?.startsWith("-") === true && !HELP.has(words[1]))
    return [first, "list", ...words.slice(1)];
  if (!first.startsWith("-") || first === "--" || PROGRAM_FLAGS.has(first)) return words;
  return ["chat", ...words];
}
