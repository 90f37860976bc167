import { spawn } from "node:child_process";
import type { Settings } from "../../config/settings-schema.ts";
import type { AgentEvent, RunStatus } from "../../core/events.ts";
import { visible } from "../../core/visible.ts";
import { hostProgram, safeEnvironment } from "../../platform/host-programs.ts";
import type { Renderer } from "../../render/renderers.ts";
import { move, type Output } from "../../render/tty/output.ts";
import type { Clock } from "../../render/tty/paced-writer.ts";

/** A person watches the terminal for this long; after a longer wait they are likely to look elsewhere. */
const LONG_MS = 30_000;
const MAX_TITLE = 80;

interface Ended {
  readonly status: RunStatus;
  readonly ms: number;
}

export interface Notice {
  readonly bell: boolean;
  readonly desktop: boolean;
}

/**
 * How to notify a person of the end of a run: if it took long, or waits for an answer. A person who interrupted the run
 * knows.
 */
export function noticeFor({ status, ms }: Ended, notify: Settings["notify"]): Notice {
  const due = status === "parked" || (status !== "interrupted" && ms > LONG_MS);
  return {
    bell: due && (notify === "bell" || notify === "both"),
    desktop: due && (notify === "desktop" || notify === "both"),
  };
}

/** Whether a person watches: stderr is a terminal, and neither output for a program nor silence was requested. */
export const isWatched = (
  { json, quiet }: { readonly json: boolean; readonly quiet: boolean },
  screen: Pick<Output, "isTTY">,
  ci: string | undefined,
): boolean => screen.isTTY && !json && !quiet && (ci ?? "") === "";

/** One line without markup, because notification servers interpret tags and entities. */
export function noticeText(status: RunStatus, title: string): string {
  const line = visible(title.replaceAll(/\s+/gu, " ").replaceAll(/[<>&]/g, " ")).trim();
  const said = status === "parked" ? "waits for your approval" : `ended: ${status}`;
  return `${said} (${Array.from(line).slice(0, MAX_TITLE).join("")})`;
}

type Env = Readonly<Record<string, string | undefined>>;

/** The text is an argument of its own, also to AppleScript: never part of a program. */
const PROGRAMS: readonly (readonly [string, (text: string) => readonly string[]])[] = [
  ["notify-send", (text) => ["--app-name=harness", "--", "harness", text]],
  [
    "osascript",
    (text) => [
      "-e",
      "on run argv",
      "-e",
      'display notification (item 1 of argv) with title "harness"',
      "-e",
      "end run",
      text,
    ],
  ],
];

/**
 * Uses the first program that PATH has outside of `apart`. Nothing waits for the program, and its failures are ignored.
 */
export async function desktopNotice(text: string, env: Env, apart: string): Promise<void> {
  for (const [name, argv] of PROGRAMS) {
    const file = await hostProgram(name, env, apart);
    if (file === null) continue;
    const child = spawn(file, argv(text), {
      env: safeEnvironment(env, apart),
      cwd: "/",
      detached: true,
      stdio: "ignore",
    });
    child.on("error", () => undefined);
    child.unref();
    return;
  }
}

interface NoticeParts {
  readonly notify: Settings["notify"];
  readonly title: string;
  readonly screen: Output;
  readonly clock: Clock;
  readonly desktop: (text: string) => void;
}

/** Shows a run as `renderer` does, and then notifies the person of its end. */
export function withNotice(
  renderer: Renderer,
  { notify, title, screen, clock, desktop }: NoticeParts,
): Renderer {
  const began = clock.now();
  return {
    take: (event: AgentEvent) => {
      renderer.take(event);
      if (event.type !== "run.finished") return;
      const way = noticeFor({ status: event.status, ms: clock.now() - began }, notify);
      if (way.bell) screen.write(move("bell"));
      if (way.desktop) desktop(noticeText(event.status, title));
    },
    end: () => renderer.end(),
  };
}

interface ChatNoticeParts extends Pick<NoticeParts, "clock" | "desktop"> {
  /** Read on each use, because a chat can change the setting. */
  readonly notify: () => Settings["notify"];
  readonly title: () => string;
  readonly ring: () => void;
}

/** The notices of a chat: for a request that took long, and for a question long after the person's last input. */
export class ChatNotice {
  readonly #telling: ChatNoticeParts | undefined;
  #since = 0;

  /** Undefined if nobody watches: then nobody is notified. */
  constructor(telling: ChatNoticeParts | undefined) {
    this.#telling = telling;
  }

  take(event: AgentEvent): void {
    if ("agent" in event && event.agent !== undefined) return;
    if (event.type === "run.started") this.#heard();
    if (event.type === "run.finished") this.#tell(event.status);
  }

  /** Notifies the person of a question that they are asked. */
  async asked<T>(question: () => Promise<T>): Promise<T> {
    this.#tell("parked");
    try {
      return await question();
    } finally {
      this.#heard();
    }
  }

  #heard(): void {
    this.#since = this.#telling?.clock.now() ?? 0;
  }

  #tell(status: RunStatus): void {
    if (this.#telling === undefined) return;
    const { clock, notify, ring, desktop, title } = this.#telling;
    const ms = clock.now() - this.#since;
    if (ms <= LONG_MS) return;
    const way = noticeFor({ status, ms }, notify());
    if (way.bell) ring();
    if (way.desktop) desktop(noticeText(status, title()));
  }
}
