import { EXIT, HarnessError } from "../../../core/errors.ts";
import type { ExecResult, OwnedBox } from "../../../core/ports.ts";
import { execJson } from "../../../render/exec-json.ts";
import { visible } from "../../../render/tty/visible.ts";
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
  static override strict = false;
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
    const { flags, argv } = await this.parse(SandboxExec);
    const words = argv.map(String);
    if (words.length === 0)
      throw new HarnessError(EXIT.usage, "there is no command", "harness sandbox exec -- ls -l");
    const { settings } = await configFor(flags);
    const opening = { settings, workspace: workspaceOf(flags), runtime: flags.runtime ?? null };
    await untilInterrupted(async (signal) => {
      const warn = (text: string): void => {
        if (!flags.quiet) process.stderr.write(`note: ${visible(text)}\n`);
      };
      const opened = openBoxFor({ ...opening, watchChanges: flags.json, warn }, signal);
      await using box = await opened.catch((thrown: unknown) => noSandbox(thrown, flags.json));
      const timeoutMs = settings.timeout;
      const result = flags.json
        ? await asJson(box, { words, timeoutMs }, signal)
        : await streamed(box, { words, timeoutMs }, signal);
      if (!flags.quiet && !flags.json) explain(result);
      process.exitCode = result.exit_code;
      signal.throwIfAborted();
    });
  }
}

interface What {
  readonly words: readonly string[];
  readonly timeoutMs: number;
}

async function asJson(box: OwnedBox, what: What, signal: AbortSignal): Promise<ExecResult> {
  const result = await box.exec({ ...what, ...input(), keep: KEEP }, signal);
  answerJson(execJson(result, await box.changes()));
  return result;
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
function explain({ cause, reason, quarantined }: ExecResult): void {
  if (cause !== null && cause !== "program") process.stderr.write(`harness: ${visible(reason)}\n`);
  for (const { from, takeBack } of quarantined)
    process.stderr.write(
      `harness: ${visible(from)} was made in the box and moved out of the workspace; to take it back: ${visible(takeBack)}\n`,
    );
}

function noSandbox(thrown: unknown, json: boolean): never {
  if (!json && thrown instanceof HarnessError && thrown.exit === EXIT.sandbox)
    throw new HarnessError(EXIT.noBox, thrown.message, thrown.remedy, thrown);
  throw thrown;
}
