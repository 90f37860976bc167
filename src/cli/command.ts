import { Command, Flags, type Interfaces } from "@oclif/core";
import { type Host, hostFrom } from "../app/host.ts";
import type { Verdict } from "../core/decision.ts";
import { EXIT, HarnessError } from "../core/errors.ts";
import { inertJson, visibleLine } from "../core/visible.ts";
import { becomePlain, isPlainWanted, stderr, stdout } from "../render/tty/output.ts";

type Parsed = Readonly<Record<string, unknown>>;

/** What every command shares: output flags, and leaving failures to command-line.ts. */
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
    if (isPlainWanted({ plain: this.#says("--plain"), isTTY: stderr.isTTY, env: process.env })) becomePlain();
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

  /** command-line.ts reports; oclif would print the error a second time. */
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
