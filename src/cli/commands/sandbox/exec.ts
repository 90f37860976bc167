import { Flags } from "@oclif/core";
import { type BoxLog, EMPTY_LOG, notesOf } from "../../../core/run-record.ts";
import { EXIT, HarnessError } from "../../../core/errors.ts";
import { type ExecResult, isUnstarted, type OwnedBox } from "../../../core/ports.ts";
import { answerJson, HarnessCommand } from "../../command.ts";
import { visible, visibleLine, visibleWhole } from "../../../core/visible.ts";
import { boxFlags, configFor, workspaceOf } from "../../settings.ts";
import { untilInterrupted } from "../../../app/interruption.ts";
import { pipedInput } from "../../terminal.ts";
import { noteUntrusted } from "../../../app/project/project-trust.ts";
import { noteTo } from "../../../app/stderr-messages.ts";
import { openBoxFor } from "../../../app/boxes/box-access.ts";
import { asNoBox, execAnswer } from "../../../app/boxes/own-boxes.ts";
import { stderr, stdout } from "../../../render/tty/output.ts";

const KEEP = { head: 256 * 1024, tail: 256 * 1024 };
/** The box had a layer or a copy, and neither is kept for a single command. */
const THROWN_AWAY = "no change reached the repository";
const ALL = { head: Number.MAX_SAFE_INTEGER, tail: 0 };

export class SandboxExec extends HarnessCommand {
  static override summary = "Run one command in a box over the current folder.";
  static override description =
    "No model is asked. The words after -- are the command; a shell line needs a shell: -- bash -c 'LINE'. Ends with the command's own exit code; with 124 if its time ran out, 125 if there is no box, 137 if it was killed. Piped input becomes the command's input. With --isolation overlay or copy, the command works on a layer over the folder or on a copy of it: --json lists the changes, and then they are thrown away with the box.";
  static override usage = "sandbox exec [FLAGS] -- CMD...";
  static override flags = {
    ...boxFlags,
    policy: Flags.boolean({
      description: "judge the command first, and refuse (4) what an unattended run would refuse",
    }),
  };
  static override examples = [
    "harness sandbox exec -- npm test",
    "harness sandbox exec --json --mode read-only -- bash -c 'ls | wc -l'",
  ];

  async run(): Promise<void> {
    // The parser sorts its list of words and loses some, so words after -- never go through it.
    const dashes = this.argv.indexOf("--");
    const words = dashes === -1 ? [] : this.argv.slice(dashes + 1);
    const { flags } = await this.parse(SandboxExec, dashes === -1 ? this.argv : this.argv.slice(0, dashes));
    if (words.length === 0)
      throw new HarnessError(EXIT.usage, "no command was given", "harness sandbox exec -- ls -l");
    const { settings } = await configFor(flags);
    const workspace = workspaceOf(flags);
    if (flags.policy) {
      const { refuseUnlessAllowed } = await import("../../../app/project/policy-commands.ts");
      await refuseUnlessAllowed(this.host, words, settings, { workspace, cwd: flags.cwd });
    }
    await noteUntrusted(this.host, workspace, flags.quiet);
    const opening = { host: this.host, settings, workspace, runtime: flags.runtime ?? null };
    const left = readerLeft();
    const inBox = async (signal: AbortSignal): Promise<void> => {
      await using box = await openBoxFor(
        { ...opening, watchChanges: flags.json, keep: null, warn: noteTo(flags.quiet) },
        signal,
      );
      using piped = pipedInput();
      const { input } = piped;
      const what = { words, timeoutMs: settings.timeout, ...(input === undefined ? {} : { input }) };
      const either = AbortSignal.any([signal, left]);
      const result = await (flags.json ? asJson : streamed)(box, what, either);
      signal.throwIfAborted();
      if (left.aborted) return;
      await box.settle?.();
      const changes = flags.json ? await box.changes() : undefined;
      if (!flags.json && !flags.quiet) explain(result, words[0] ?? "");
      const { log, failed } = await closed(box);
      if (changes !== undefined) answerJson(await execAnswer(result, changes, log, box.workspace));
      for (const note of notesOf(log)) stderr.write(`note: ${visibleWhole(note)}\n`);
      if (failed !== undefined) throw failed;
      if (!flags.quiet && settings.isolation !== "bind") stderr.write(`harness: ${THROWN_AWAY}\n`);
      process.exitCode = result.exit_code;
    };
    await untilInterrupted(
      (signal) => inBox(signal).catch((thrown: unknown) => asNoBox(thrown, flags.json)),
      "",
    );
    // A flush would wait for that reader.
    if (left.aborted) process.exit(0);
  }
}

interface What {
  readonly words: readonly string[];
  readonly timeoutMs: number;
  readonly input?: AsyncIterable<Uint8Array>;
}

/** Ends the command if the reader of its output leaves (`| head -1`), and then the box; that is no failure. */
function readerLeft(): AbortSignal {
  const left = new AbortController();
  stdout.on("reader-left", () => left.abort());
  return left.signal;
}

async function asJson(box: OwnedBox, what: What, signal: AbortSignal): Promise<ExecResult> {
  return box.exec({ ...what, keep: KEEP }, signal);
}

async function streamed(box: OwnedBox, what: What, signal: AbortSignal): Promise<ExecResult> {
  const [out, err] = [stdout.program(), stderr.program()];
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  signal.addEventListener("abort", () => resolve(), { once: true });
  const result = await box.exec(
    {
      ...what,
      keep: ALL,
      // After an interruption, do not wait for a reader that stopped reading.
      onOutput: (stream, bytes) => {
        const taken = signal.aborted ? undefined : (stream === "stdout" ? out : err).write(bytes);
        return taken === undefined ? undefined : Promise.race([taken, ended]);
      },
    },
    signal,
  );
  if (signal.aborted) return result;
  await out.end();
  await err.end();
  return result;
}

/** The command's result is reported even if its box fails to close. */
async function closed(box: OwnedBox): Promise<{ readonly log: BoxLog; readonly failed?: unknown }> {
  try {
    return { log: (await box.close?.()) ?? EMPTY_LOG };
  } catch (failed) {
    return { log: EMPTY_LOG, failed };
  }
}

/** The flags that raise the limits of a box, with a value that is enough for most builds. */
const RAISED_BY: Readonly<Partial<Record<string, string>>> = {
  timeout: "--timeout 30m",
  memory: "--memory 4g",
  pids: "--pids 2048",
};

/** Explains endings that the command's own output does not show. */
function explain(result: ExecResult, program: string): void {
  const { cause, reason } = result;
  const unstarted = isUnstarted(result);
  if (cause === null || (cause === "program" && !unstarted)) return;
  stderr.write(`harness: ${visible(unstarted ? `${visibleLine(program)}: ${reason}` : reason)}\n`);
  const flag = RAISED_BY[cause];
  if (flag !== undefined) stderr.write(`  next: raise the limit: harness sandbox exec ${flag} -- …\n`);
}
