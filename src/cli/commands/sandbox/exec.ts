import { EXIT, HarnessError } from "../../../core/errors.ts";
import type { ExecResult, OwnedBox } from "../../../core/ports.ts";
import { execJson } from "../../../render/exec-json.ts";
import { answerJson, HarnessCommand } from "../../command.ts";
import { configFor, settingFlags, workspaceOf } from "../../settings.ts";
import { untilInterrupted } from "../../interrupt.ts";
import { streamTo } from "../../stream-to.ts";
import { openBoxFor } from "../../wire.ts";

const KEEP = { head: 256 * 1024, tail: 256 * 1024 };
const ALL = { head: Number.MAX_SAFE_INTEGER, tail: 0 };

export class SandboxExec extends HarnessCommand {
  static override summary = "Run one command in a box over the current folder.";
  static override description =
    "No model is asked. The words behind -- are the command; a shell line needs a shell: -- bash -c 'LINE'. Ends with the command's own code; 124 when its time was over, 125 when there is no box, 137 when it was killed. What is piped in is the command's input.";
  static override usage = "sandbox exec [FLAGS] -- CMD...";
  static override flags = {
    mode: settingFlags.mode,
    cwd: settingFlags.cwd,
    isolation: settingFlags.isolation,
    image: settingFlags.image,
    "allow-domain": settingFlags["allow-domain"],
    memory: settingFlags.memory,
    cpus: settingFlags.cpus,
    pids: settingFlags.pids,
    timeout: settingFlags.timeout,
    runtime: settingFlags.runtime,
  };
  static override examples = [
    "harness sandbox exec -- npm test",
    "harness sandbox exec --json --mode read-only -- bash -c 'ls | wc -l'",
  ];

  async run(): Promise<void> {
    // The parser's own list of words is sorted, and loses some: what stands behind -- never goes through it.
    const dashes = this.argv.indexOf("--");
    const words = dashes === -1 ? [] : this.argv.slice(dashes + 1);
    const { flags } = await this.parse(SandboxExec, dashes === -1 ? this.argv : this.argv.slice(0, dashes));
    if (words.length === 0)
      throw new HarnessError(EXIT.usage, "there is no command", "harness sandbox exec -- ls -l");
    const { settings } = await configFor(flags);
    const opening = { settings, workspace: workspaceOf(flags), runtime: flags.runtime ?? null };
    const left = readerLeft();
    await untilInterrupted(async (signal) => {
      const warn = (text: string): void => {
        if (!flags.quiet) process.stderr.write(`note: ${text}\n`);
      };
      const opened = openBoxFor({ ...opening, watchChanges: flags.json, warn }, signal);
      await using box = await opened.catch((thrown: unknown) => noSandbox(thrown, flags.json));
      const timeoutMs = settings.timeout;
      const either = AbortSignal.any([signal, left]);
      const result = await (flags.json ? asJson : streamed)(box, { words, timeoutMs }, either);
      // An open pipe that nobody reads any more would keep this program alive.
      if (!process.stdin.isTTY) process.stdin.destroy();
      signal.throwIfAborted();
      if (left.aborted) return;
      if (flags.json) answerJson(execJson(result, await box.changes()));
      else if (!flags.quiet) explain(result);
      process.exitCode = result.exit_code;
    });
    // A flush would wait for that reader.
    if (left.aborted) process.exit(0);
  }
}

interface What {
  readonly words: readonly string[];
  readonly timeoutMs: number;
}

/** The command is ended when nobody wants its output (`| head -1`), and the box put away; that is no failure. */
function readerLeft(): AbortSignal {
  const left = new AbortController();
  process.stdout.on("reader-left", () => left.abort());
  return left.signal;
}

async function asJson(box: OwnedBox, what: What, signal: AbortSignal): Promise<ExecResult> {
  return box.exec({ ...what, ...input(), keep: KEEP }, signal);
}

async function streamed(box: OwnedBox, what: What, signal: AbortSignal): Promise<ExecResult> {
  const [out, err] = [streamTo(process.stdout), streamTo(process.stderr)];
  const result = await box.exec(
    {
      ...what,
      ...input(),
      keep: ALL,
      onOutput: (stream, bytes) => (stream === "stdout" ? out : err).write(bytes),
    },
    signal,
  );
  await out.end();
  await err.end();
  return result;
}

/** A person's keyboard is not handed to a command that has no terminal. */
const input = (): { readonly input?: AsyncIterable<Uint8Array> } =>
  process.stdin.isTTY ? {} : { input: process.stdin as AsyncIterable<Uint8Array> };

/** Endings that the command's own output does not tell of. */
function explain({ exit_code, cause, reason, stdout, stderr, quarantined }: ExecResult): void {
  const unstarted = (exit_code === 126 || exit_code === 127) && stdout.total + stderr.total === 0;
  if (cause !== null && (cause !== "program" || unstarted)) process.stderr.write(`harness: ${reason}\n`);
  for (const { from, takeBack } of quarantined)
    process.stderr.write(
      `harness: ${from} was made in the box and moved out of the workspace; to take it back: ${takeBack}\n`,
    );
}

function noSandbox(thrown: unknown, json: boolean): never {
  if (!json && thrown instanceof HarnessError && thrown.exit === EXIT.sandbox)
    throw new HarnessError(EXIT.noBox, thrown.message, thrown.remedy, thrown);
  throw thrown;
}
