/** The class of all commands, their answers, and how a command line becomes a command. */
import { existsSync } from "node:fs";
import path from "node:path";
import { Command, Config, Flags, type Hook, type Interfaces, run } from "@oclif/core";
import type { LoadFile } from "../app/compiled-code.ts";
import { type Host, hostFrom, packageRoot } from "../app/host.ts";
import { CODES } from "../app/interruption.ts";
import { describeFailure, renderFailure } from "../app/stderr-messages.ts";
import type { Verdict } from "../core/decision.ts";
import { EXIT, HarnessError } from "../core/errors.ts";
import { inertJson, visibleLine } from "../core/visible.ts";
import { makeStreamsPlain, isPlainWanted, stderr, stdout } from "../render/tty/output.ts";

type Parsed = Readonly<Record<string, unknown>>;

/** What every command shares: output flags, and leaving failures to `runCli`. */
export abstract class HarnessCommand extends Command {
  static override baseFlags = {
    // First because of its letter: help strips the blanks before the first flag, and flags without a letter need them.
    quiet: Flags.boolean({ char: "q", description: "show no progress on stderr", helpGroup: "OUTPUT" }),
    json: Flags.boolean({ description: "print the answer as JSON on stdout", helpGroup: "OUTPUT" }),
    plain: Flags.boolean({
      description: "use words instead of symbols, no live line and no colours (for screen readers)",
      helpGroup: "OUTPUT",
    }),
    "no-color": Flags.boolean({ description: "use no colours (also: NO_COLOR)", helpGroup: "OUTPUT" }),
  };

  /** Read once, and handed down. */
  protected get host(): Host {
    return this.#host;
  }
  #host = hostFrom(process.env);

  /** Refuses a value for a switch: oclif would take it as an argument, and `run` as a word of the task. */
  protected override async init(): Promise<void> {
    await super.init();
    const end = this.argv.indexOf("--");
    if (isPlainWanted({ plain: this.#says("--plain"), isTTY: stderr.isTTY, env: process.env }))
      makeStreamsPlain();
    const switches = Object.entries({ ...this.ctor.baseFlags, ...this.ctor.flags });
    for (const word of this.argv.slice(0, end === -1 ? undefined : end)) {
      const [, name = "", value = ""] = /^--([^=]+)=(.*)$/s.exec(word) ?? [];
      if (switches.some(([each, { type }]) => each === name && type === "boolean"))
        throw new HarnessError(
          EXIT.usage,
          `--${name} takes no value, found ${visibleLine(value)}`,
          `--${name}`,
        );
    }
  }

  /** Runs the command from its words to its end; throws on failure. */
  perform(): Promise<unknown> {
    return this._run();
  }

  /** Puts --engine into the host, because it is needed in places that read no settings. */
  protected override async parse<F extends Parsed, B extends Parsed, A extends Parsed>(
    options?: Interfaces.Input<F, B, A>,
    argv?: string[],
  ): Promise<Interfaces.ParserOutput<F, B, A>> {
    const parsed = await super.parse(options, argv);
    const { engine, html, json } = parsed.flags as Readonly<Record<"engine" | "html" | "json", unknown>>;
    if (html === "") throw new HarnessError(EXIT.usage, "--html needs a file name", "--html FILE");
    if (html === "-" && json === true)
      throw new HarnessError(EXIT.usage, "--html - and --json both write to stdout", "--html FILE --json");
    if (typeof engine === "string") this.#host = hostFrom(process.env, engine);
    return parsed;
  }

  #says(flag: string): boolean {
    const end = this.argv.indexOf("--");
    return this.argv.slice(0, end === -1 ? undefined : end).includes(flag);
  }

  /** `runCli` reports it; oclif would print the error a second time. */
  protected override catch(error: Error): Promise<never> {
    return Promise.reject(error);
  }
}

/** The answer of a command. Everything else goes to stderr. */
export function answer(text: string): void {
  stdout.write(text.endsWith("\n") ? text : `${text}\n`);
}

/**
 * Prints the answer of a run. On a shared terminal it appears below earlier stderr output, even if that was blocked.
 */
export async function lastAnswer(text: string): Promise<void> {
  if (stdout.isTTY && stderr.isTTY) await stderr.allTaken();
  answer(text);
}

export function answerJson(value: unknown): void {
  stdout.write(`${inertJson(value)}\n`);
}

/** Prints many answers, no faster than they are read. */
export async function answerEach(values: AsyncIterable<unknown>): Promise<void> {
  for await (const value of values) await stdout.writeAll(`${inertJson(value)}\n`);
}

/** The exit code of `policy check` and `policy path`. */
export const exitOf = (verdict: Verdict): number =>
  ({ allow: EXIT.done, ask: EXIT.ask, deny: EXIT.deny })[verdict];

/** Runs one command line to its exit code; every failure is printed here and nowhere else. */
export async function runCli(argv: readonly string[], load: LoadFile): Promise<void> {
  const words = routed(argv);
  const options = beforeDashes(words);
  if (options.includes("--no-color")) withoutColor();
  if (ENDS_IN_ORDER.has(words[0] ?? "")) endInOrder(options.includes("--json"));
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

/** Commands whose exit code after a signal is documented, whenever the signal comes. */
const ENDS_IN_ORDER: ReadonlySet<string> = new Set(["run", "approve", "batch", "eval", "vet"]);

/**
 * Before the work of a command has begun, and after it has ended, a signal would end the process without an exit code
 * and without the error that --json promises. Work that is in progress listens itself.
 */
function endInOrder(json: boolean): void {
  for (const [name, exit] of Object.entries(CODES))
    process.on(name, () => {
      if (process.listenerCount(name) > 1) return;
      const leave = (): void => process.exit(exit);
      if (stdout.hasWritten) return leave();
      renderFailure(
        { exit, message: "interrupted before anything was begun", remedy: "run the same command again" },
        json,
      );
      setTimeout(leave, LEAVES_MS).unref();
      void stdout.allTaken().finally(leave);
    });
}

/** A reader that takes nothing does not keep the process alive. */
const LEAVES_MS = 1000;

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

const HELP: ReadonlySet<string> = new Set(["--help", "-h"]);

const PROGRAM_FLAGS: ReadonlySet<string> = new Set([...HELP, "--version"]);

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

type CommandClass = (new (argv: string[], config: Config) => HarnessCommand) & typeof HarnessCommand;

const NAME = /^[a-z]+$/;
/** File name of a command that is also a folder of commands. */
const INDEX = "index";

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
