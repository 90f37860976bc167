import { EXIT, HarnessError } from "../../../core/errors.ts";
import type { ExecResult, OwnedBox } from "../../../core/ports.ts";
import { movedAway } from "../../../docker/box/box.ts";
import { execJson } from "../../../render/exec-json.ts";
import { asNoBox } from "../../box-failure.ts";
import { visible } from "../../../render/tty/visible.ts";
import { answerJson, HarnessCommand } from "../../command.ts";
import { boxFlags, configFor, workspaceOf } from "../../settings.ts";
import { untilInterrupted } from "../../interrupt.ts";
import { pipedInput } from "../../piped-input.ts";
import { noteTo } from "../../note.ts";
import { streamTo } from "../../stream-to.ts";
import { openBoxFor } from "../../wire.ts";

const KEEP = { head: 256 * 1024, tail: 256 * 1024 };
/** The box had a layer or a copy, and nothing keeps either for one command. */
const THROWN_AWAY = "nothing of it reached the repository";
const ALL = { head: Number.MAX_SAFE_INTEGER, tail: 0 };

export class SandboxExec extends HarnessCommand {
  static override summary = "Run one command in a box over the current folder.";
  static override description =
    "No model is asked. The words behind -- are the command; a shell line needs a shell: -- bash -c 'LINE'. Ends with the command's own code; 124 when its time was over, 125 when there is no box, 137 when it was killed. What is piped in is the command's input. With --isolation overlay or copy the command works on a layer over the folder or on a copy of it: --json lists the changes, and then they are thrown away with the box.";
  static override usage = "sandbox exec [FLAGS] -- CMD...";
  static override strict = false;
  static override flags = boxFlags;
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
      const opened = openBoxFor({ ...opening, watchChanges: flags.json, warn: noteTo(flags.quiet) }, signal);
      await using box = await opened.catch((thrown: unknown) => asNoBox(thrown, flags.json));
      using given = pipedInput();
      const { input } = given;
      const what = { words, timeoutMs: settings.timeout, ...(input === undefined ? {} : { input }) };
      const result = flags.json ? await asJson(box, what, signal) : await streamed(box, what, signal);
      if (!flags.quiet && !flags.json) explain(result);
      if (!flags.quiet && settings.isolation !== "bind") process.stderr.write(`harness: ${THROWN_AWAY}\n`);
      process.exitCode = result.exit_code;
      signal.throwIfAborted();
    }, "");
  }
}

interface What {
  readonly words: readonly string[];
  readonly timeoutMs: number;
  readonly input?: AsyncIterable<Uint8Array>;
}

async function asJson(box: OwnedBox, what: What, signal: AbortSignal): Promise<ExecResult> {
  const result = await box.exec({ ...what, keep: KEEP }, signal);
  answerJson(execJson(result, await box.changes()));
  return result;
}

async function streamed(box: OwnedBox, what: What, signal: AbortSignal): Promise<ExecResult> {
  const [out, err] = [streamTo(process.stdout), streamTo(process.stderr)];
  const result = await box.exec(
    {
      ...what,
      keep: ALL,
      onOutput: (stream, bytes) => (stream === "stdout" ? out : err).write(bytes),
    },
    signal,
  );
  await out.end();
  await err.end();
  return result;
}

/** Endings that the command's own output does not tell of. */
function explain({ cause, reason, quarantined }: ExecResult): void {
  if (cause !== null && cause !== "program") process.stderr.write(`harness: ${visible(reason)}\n`);
  for (const { from, takeBack } of quarantined)
    process.stderr.write(`note: ${visible(movedAway(from, takeBack))}\n`);
}
