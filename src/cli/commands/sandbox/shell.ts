import type { ExecResult, OwnedBox } from "../../../core/ports.ts";
import { visible } from "../../../core/visible.ts";
import { HarnessCommand } from "../../command.ts";
import { untilInterrupted } from "../../../app/interruption.ts";
import { pipedInput } from "../../terminal.ts";
import { boxFlags, configFor, workspaceOf } from "../../settings.ts";
import { noteUntrusted } from "../../../app/project/project-trust.ts";
import { noteTo } from "../../../app/stderr-messages.ts";
import { openBoxFor } from "../../../app/boxes/box-access.ts";
import { asNoBox } from "../../../app/boxes/own-boxes.ts";
import { stderr, stdout } from "../../../render/tty/output.ts";

/** The best shell of the image. */
const SHELL = ["sh", "-c", "command -v bash >/dev/null && exec bash --norc; exec sh"];
const ALL = { head: Number.MAX_SAFE_INTEGER, tail: 0 };

export class SandboxShell extends HarnessCommand {
  static override summary = "Open a shell in a box over the current folder, behind the same walls.";
  static override description =
    "On a terminal, the shell is a full one, with job control and colours; what would reach your terminal itself (its title, the clipboard) is held back. Without a terminal, runs the script on stdin. Ends with the shell's exit code.";
  static override flags = boxFlags;
  static override examples = ["harness sandbox shell", "harness sandbox shell --mode read-only < look.sh"];

  async run(): Promise<void> {
    const { flags } = await this.parse(SandboxShell);
    const { settings } = await configFor(flags);
    const workspace = workspaceOf(flags);
    await noteUntrusted(this.host, workspace, flags.quiet);
    const opening = {
      host: this.host,
      settings,
      workspace,
      runtime: flags.runtime ?? null,
    };
    const inBox = async (signal: AbortSignal): Promise<void> => {
      await using box = await openBoxFor(
        { ...opening, watchChanges: false, keep: null, warn: noteTo(flags.quiet) },
        signal,
      );
      const { exit_code } =
        process.stdin.isTTY && stdout.isTTY ? await onTerminal(box, signal) : await piped(box, signal);
      process.exitCode = exit_code;
      signal.throwIfAborted();
    };
    await untilInterrupted(
      (signal) => inBox(signal).catch((thrown: unknown) => asNoBox(thrown, flags.json)),
      "harness sandbox shell",
    );
  }
}

const size = (): { readonly columns: number; readonly rows: number } => ({
  columns: stdout.columns ?? 80,
  rows: stdout.rows ?? 24,
});

async function onTerminal(box: OwnedBox, signal: AbortSignal): Promise<ExecResult> {
  const { stdin } = process;
  const screen = stdout.boxTerminal();
  stdin.setRawMode(true);
  const job = box.start({
    words: SHELL,
    env: { TERM: terminalName(process.env["TERM"]), PS1: String.raw`[box] \w \$ ` },
    timeoutMs: 0,
    keep: ALL,
    terminal: size(),
    input: stdin as AsyncIterable<Uint8Array>,
    onOutput: (_, bytes) => screen.write(bytes),
  });
  const resize = (): void => job.resize(size().columns, size().rows);
  const stop = (): void => job.kill();
  const deaf = stdout.on("resize", resize);
  signal.addEventListener("abort", stop, { once: true });
  try {
    return await job.result;
  } finally {
    deaf();
    stdin.setRawMode(false);
    stdin.destroy();
    screen.leave();
  }
}

/** A name known to every image; the host's own might not be. */
const terminalName = (name: string | undefined): string =>
  name !== undefined && /^(xterm|screen|tmux|vt100|linux)(-256color)?$/.test(name) ? name : "xterm";

async function piped(box: OwnedBox, signal: AbortSignal): Promise<ExecResult> {
  using piped = pipedInput();
  const [out, err] = [stdout.program(), stderr.program()];
  const result = await box.exec(
    {
      words: SHELL,
      timeoutMs: 0,
      keep: ALL,
      ...(piped.input === undefined ? {} : { input: piped.input }),
      onOutput: (stream, bytes) => (stream === "stdout" ? out : err).write(bytes),
    },
    signal,
  );
  await out.end();
  await err.end();
  if (result.cause !== null && result.cause !== "program")
    stderr.write(`harness: ${visible(result.reason)}\n`);
  return result;
}
