import { EXIT, HarnessError } from "../../core/errors.ts";
import { MODES } from "../../core/decision.ts";
import type { Config } from "../../config/load.ts";
import type { Settings } from "../../config/schema.ts";
import type { SessionStore } from "../../core/session.ts";
import { fitted, widthOfStream } from "../../render/tty/fitted.ts";
import { noteTo } from "../note.ts";
import { sessionsWorkspace } from "../session-store.ts";
import { configFor, workspaceOf } from "../settings.ts";
import { refuseUnbuilt } from "../unbuilt.ts";
import { Chat } from "./chat.ts";
import { COMMANDS } from "./commands.ts";
import { Face } from "./face.ts";
import { Keyboard } from "./keyboard.ts";
import { leavingBy } from "./leaving.ts";
import { person } from "./person.ts";
import { Prompt } from "./prompt.ts";
import { questionsOn } from "./questions.ts";
import { recalled, requestsIn } from "./recall.ts";
import { Room } from "./room.ts";
import { completed } from "./slash.ts";
import { type Output, stderr, stdout, styleText } from "../../render/tty/output.ts";

export interface ChatFlags {
  readonly quiet: boolean;
  readonly json: boolean;
  readonly cwd?: string | undefined;
  readonly runtime?: string | undefined;
}

/** An earlier session to go on with: named, or the last one of the folder. */
export type Earlier = { readonly id: string | undefined; readonly fork: boolean } | undefined;

/** A chat until a person leaves it; its exit code. */
export async function startChat(flags: ChatFlags, earlier?: Earlier): Promise<number> {
  const { settings, origins } = await configFor({ ...flags });
  refuseUnbuilt(settings);
  const stores = storeOnce(noteTo(flags.quiet));
  try {
    const found = earlier === undefined ? undefined : await earlierIn(await stores.open(), earlier, flags);
    const given = await sessionsWorkspace(workspaceOf({ cwd: flags.cwd }));
    const workspace = found === undefined || flags.cwd !== undefined ? given : found.info().workspace;
    return await converse({ settings, origins, flags, workspace, stores, found });
  } finally {
    await stores.close();
  }
}

interface Given {
  readonly settings: Settings;
  readonly origins: Config["origins"];
  readonly flags: ChatFlags;
  readonly workspace: string;
  readonly stores: ReturnType<typeof storeOnce>;
  readonly found: Awaited<ReturnType<typeof earlierIn>> | undefined;
}

async function converse({ settings, origins, flags, workspace, stores, found }: Given): Promise<number> {
  const [output, errors] = [stdout, stderr];
  const face = new Face(output, errors, flags.quiet);
  const cancel = (): boolean => room.cancel("SIGINT");
  const presses = { since: 0 };
  using keyboard = new Keyboard({
    input: process.stdin,
    write: (text) => output.write(text),
    onInterrupt: () => {
      if (!room.busy) return false;
      presses.since = cancel() ? 0 : presses.since + 1;
      if (presses.since === 1) noteTo(false)("it is being ended; Ctrl-C once more leaves at once");
      if (presses.since > 1) process.exit(EXIT.interrupted);
      return true;
    },
    suspend: () => process.kill(process.pid, "SIGTSTP"),
  });
  const ask = questionsOn({ keyboard, output, pause: () => face.pause() });
  await using room = new Room({
    settings,
    origins,
    workspace,
    runtime: flags.runtime ?? null,
    store: stores.open,
    face,
    approver: person({ ask, cancel }),
    warn: noteTo(flags.quiet),
  });
  using leaving = leavingBy((signal) => {
    if (signal !== "SIGTERM") face.close();
    room.cancel(signal);
    keyboard.end();
  });
  const prompt = new Prompt(keyboard, output, (line) => completed(line, COMMANDS, { mode: MODES }));
  using _ = onSignals({
    SIGINT: () => keyboard.interrupt(),
    SIGCONT: () => {
      keyboard.resume();
      prompt.redraw();
    },
  });
  errors.write(banner(settings, workspace, errors));
  if (found !== undefined) {
    const { messages } = (await room.resume(found)).memory.history;
    errors.write(recalled(messages, errors));
    prompt.remember(requestsIn(messages));
  }
  setImmediate(() => void room.ahead());
  const over = (): boolean => leaving.code() !== undefined;
  await new Chat({ room, prompt, output, errors, over }).run();
  const left = leaving.code();
  if (left === undefined && room.talk !== undefined)
    errors.write(styleText("dim", `to go on: harness resume ${room.talk.session.id}\n`, { stream: errors }));
  return left ?? EXIT.done;
}

function banner({ chat_model, provider, mode }: Settings, workspace: string, stream: Output): string {
  const width = widthOfStream(stream);
  const lines = [`${chat_model} (${provider})  ${mode}  ${workspace}`, "/help lists commands, Ctrl-D leaves"];
  return lines.map((line) => `${styleText("dim", fitted(line, width), { stream })}\n`).join("");
}

/** Opened when it is first wanted: a chat in which nothing is said leaves no trace. */
function storeOnce(warn: (text: string) => void) {
  const held: { store?: Promise<SessionStore> } = {};
  const open = async (): Promise<SessionStore> => (await import("../session-seat.ts")).openSessions(warn);
  return {
    open: (): Promise<SessionStore> => (held.store ??= open()),
    close: async (): Promise<void> => (await held.store?.catch(() => undefined))?.[Symbol.dispose](),
  };
}

async function earlierIn(store: SessionStore, earlier: NonNullable<Earlier>, { cwd }: ChatFlags) {
  const { earlierSession } = await import("../run/session-choice.ts");
  const choice = { continue: earlier.id === undefined, resume: earlier.id, fork: earlier.fork };
  const found = earlierSession(store, choice, await sessionsWorkspace(workspaceOf({ cwd })));
  if (found === undefined) throw new HarnessError(EXIT.usage, "no session to go on with", "harness");
  return found;
}

function onSignals(handlers: Readonly<Partial<Record<NodeJS.Signals, () => void>>>): Disposable {
  const entries = Object.entries(handlers);
  for (const [name, handler] of entries) process.on(name, handler);
  return {
    [Symbol.dispose]: () => {
      for (const [name, handler] of entries) process.removeListener(name, handler);
    },
  };
}
