import * as z from "zod";
import type { Box } from "../core/ports.ts";
import { type AnyTool, anyTool, type Facts, NO_FACTS, type ToolResult } from "../core/tool.ts";
import type { ToolContext, ShellState } from "./tool-context.ts";
import { count, flag, forgiving, isGiven } from "./forgiving-input.ts";
import { type Advise, adviseOnce, asResult, endingOf } from "./shell/command-ending.ts";
import { jobBook, type Jobs } from "./shell/shell-jobs.ts";
import { judgedText, KEEP, wordsOf } from "./shell/command-words.ts";
import { type Keeper, keeperOf, plain, wrapped } from "./shell/shell-state.ts";
const MAX_S_LENGTH = 600;

const input = forgiving(
  z
    .strictObject({
      command: z.string().optional(),
      timeout: count.optional(),
      background: flag.optional(),
      job: z.string().optional(),
      kill: flag.optional(),
      restart: flag.optional(),
    })
    .refine(
      ({ command, job, restart }) => [command, job, restart || undefined].filter(isGiven).length === 1,
      { error: 'give one of "command", "job" and "restart"' },
    ),
);

type Input = z.infer<typeof input>;

const FOLDER =
  "to work in another folder begin the command with cd DIR && …; the folder stays for later calls";
const VARIABLES = "to set a variable begin the command with NAME=value, or export it for later calls";
const SECONDS = '"timeout" is in seconds';
const INSTEAD = {
  cwd: FOLDER,
  dir: FOLDER,
  directory: FOLDER,
  folder: FOLDER,
  path: FOLDER,
  workdir: FOLDER,
  working_dir: FOLDER,
  working_directory: FOLDER,
  workingDirectory: FOLDER,
  env: VARIABLES,
  environment: VARIABLES,
  timeout_ms: SECONDS,
  timeoutMs: SECONDS,
  timeout_seconds: SECONDS,
  stdin: "to give it input use a here-document in the command",
  input: "to give it input use a here-document in the command",
};

interface Shell {
  readonly context: ToolContext;
  readonly jobs: Jobs;
  readonly advise: Advise;
  readonly keeper: Keeper;
}

/** The shell's state when the call was judged. */
type State = Pick<ShellState, "folder" | "env">;

/** One shell: its folder and exported variables persist from call to call, its jobs until the box ends. */
export function bashTool(context: ToolContext): AnyTool {
  const advise = adviseOnce();
  const shell: Shell = {
    context,
    jobs: jobBook(context.agent, advise),
    advise,
    keeper: keeperOf(context),
  };
  return anyTool<Input>({
    name: "bash",
    instead: INSTEAD,
    description:
      "Run a bash command. The working directory and exported variables persist; restart: true forgets them. timeout: seconds " +
      `(default ${context.timeoutMs / 1000}, max ${longest(context)}). background: true for servers: gives a job (j1, j2…). ` +
      "With job instead of command: its new output; kill: true ends it.",
    input,
    where: "stated",
    concurrent: false,
    state: (given) => {
      const { folder, env } = context.shell;
      return {
        facts: factsOf(given, { folder, env }),
        run: (box, signal) => run({ ...shell, folder, env }, given, box, signal),
      };
    },
  });
}

function factsOf({ command, background }: Input, { folder, env }: State): Facts {
  if (!isGiven(command)) return NO_FACTS;
  const lasting = background === true ? ({ lasting: true } as const) : {};
  return { ...NO_FACTS, commands: [judgedText(command, env)], folder, ...lasting };
}

async function run(shell: Shell & State, given: Input, box: Box, signal: AbortSignal): Promise<ToolResult> {
  const { command, job, background, kill = false, timeout } = given;
  if (given.restart === true) return restarted(shell.context);
  if (!isGiven(command)) {
    const waitMs = Math.min(timeout ?? 0, MAX_S_LENGTH) * 1000;
    return shell.jobs.look(box, { id: job ?? "", kill, waitMs }, signal);
  }
  if (background !== true) return foreground(shell, { command, timeout }, box, signal);
  const { context, folder, env } = shell;
  const there = folder === context.workspace ? undefined : await box.stat(folder);
  if (there !== undefined && (there.kind !== "ok" || there.value.kind !== "folder")) return lostFolder(shell);
  return shell.jobs.start(box, { words: plain(command), folder, env, timeoutMs: 0 }, signal);
}

/**
 * The way out when exported variables make the policy refuse every command: a command that unsets them would be
 * refused, too.
 */
function restarted({ workspace, shell }: ToolContext): ToolResult {
  shell.move(workspace, {});
  return { kind: "ok", text: `The shell is in ${workspace}, with no exported variables. Jobs go on.` };
}

/** The command does not run in another folder instead: it was judged for the folder that it named. */
function lostFolder({ context: { workspace, shell }, folder, env }: Shell & State): ToolResult {
  shell.move(workspace, env);
  const why = `The working directory ${folder} is gone; the shell is now in ${workspace}.`;
  return { kind: "failed", cause: "program", text: `${why} Nothing was run: send it again.` };
}

/** The longest timeout, in seconds, that the model may request: at least the default of a command. */
const longest = ({ timeoutMs }: ToolContext): number => Math.max(MAX_S_LENGTH, timeoutMs / 1000);

/** One request to the box: its result includes the shell's state, and a missing folder is noticed at its start. */
async function foreground(
  shell: Shell & State,
  { command, timeout }: { readonly command: string; readonly timeout: number | undefined },
  box: Box,
  signal: AbortSignal,
): Promise<ToolResult> {
  const { context, advise, keeper, folder, env } = shell;
  const call = keeper(box);
  const most = longest(context);
  const timeoutMs =
    timeout === undefined || timeout === 0 ? context.timeoutMs : Math.min(timeout, most) * 1000;
  const elsewhere = folder === context.workspace ? {} : ({ exactFolder: true } as const);
  const request = { words: wrapped(command), folder, env, timeoutMs, keep: KEEP, ...elsewhere };
  const result = await box.exec({ ...request, ...call.request }, signal);
  if (result.folder_gone === true && folder !== context.workspace) return lostFolder(shell);
  const notKept = await call.take(result);
  const said = wordsOf(result);
  const ending = endingOf(result, said);
  const notes = [
    ...notKept,
    ...((timeout ?? 0) > most ? [`[the timeout was cut to ${most} s]`] : []),
    ...advise(ending.advice),
  ];
  return asResult(ending, [said === "" ? "(no output)" : said, ...notes, ...ending.lines].join("\n"));
}
