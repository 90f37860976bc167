/**
 * `npm run picture`: draws docs/demo.svg, chat.svg, question.svg and report.svg from real runs, as a terminal shows
 * them. Needs an engine, and tmux as the terminal.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { terminalPicture } from "./terminal-picture.ts";

const root = path.join(import.meta.dirname, "..");
const harness = path.join(root, "bin", "harness");
const COLUMNS = 92;
const ROWS = 44;
const PATIENCE_MS = 120_000;

function draw(name: string, title: string, rows: readonly string[]): void {
  writeFileSync(path.join(root, "docs", `${name}.svg`), terminalPicture({ title, rows }));
}

/** A neutral environment: without this user's settings and sessions, with the usual folder for temporary files. */
const home = mkdtempSync(path.join(tmpdir(), "harness-picture-"));
const env = { ...process.env, XDG_CONFIG_HOME: home, XDG_STATE_HOME: home, TMPDIR: "/tmp", FORCE_COLOR: "1" };
const workspace = path.join(home, "broken-sum");
const scene = path.join(home, "picture.jsonl");

/** Hides the folder in which the picture was made. */
const anywhere = (row: string): string => row.replaceAll(home, "~");

/** Everything that a command prints, even beyond one screen. */
function printed(words: readonly string[]): readonly string[] {
  const { status, stdout, stderr } = spawnSync(harness, words, { encoding: "utf8", env, cwd: workspace });
  if (status !== 0) throw new Error(`harness ${words.join(" ")} ended with ${status}: ${stderr}`);
  return `${stderr}${stdout}`.trimEnd().split("\n");
}

class Screen implements Disposable {
  readonly #socket = path.join(home, "tmux.sock");

  constructor(words: readonly string[]) {
    const given = Object.entries({ XDG_CONFIG_HOME: home, XDG_STATE_HOME: home, LANG: "C.UTF-8" });
    const variables = given.flatMap(([name, value]) => ["-e", `${name}=${value}`]);
    const size = ["-x", String(COLUMNS), "-y", String(ROWS)];
    this.#tmux(["new-session", "-d", ...size, ...variables, "-c", workspace, harness, ...words]);
  }

  type(text: string): void {
    this.#tmux(["send-keys", "-l", text]);
  }

  press(key: string): void {
    this.#tmux(["send-keys", key]);
  }

  /** The rows of the screen with colours, once `wanted` appears. */
  async until(wanted: RegExp): Promise<readonly string[]> {
    const over = AbortSignal.timeout(PATIENCE_MS);
    while (!wanted.test(this.#tmux(["capture-pane", "-p"]))) {
      if (over.aborted)
        throw new Error(`${String(wanted)} never came:\n${this.#tmux(["capture-pane", "-p"])}`);
      await sleep(200);
    }
    const rows = this.#tmux(["capture-pane", "-p", "-e"]).trimEnd().split("\n");
    return rows.map(anywhere);
  }

  #tmux(words: readonly string[]): string {
    return execFileSync("tmux", ["-S", this.#socket, "-f", "/dev/null", ...words], { encoding: "utf8" });
  }

  [Symbol.dispose](): void {
    // The server is gone already if the chat was left.
    spawnSync("tmux", ["-S", this.#socket, "kill-server"]);
  }
}

async function chat(): Promise<void> {
  using screen = new Screen(["--provider", "scripted", "--model", scene]);
  await screen.until(/no box yet/);
  screen.type("mend the bug, and keep what the test says");
  screen.press("Enter");
  draw("question", "harness asks before a command runs", await screen.until(/a key or the arrows/));
  screen.type("y");
  await screen.until(/❯ y {2}once/);
  screen.press("Enter");
  draw("chat", "a chat with harness", await screen.until(/nothing else was touched[\s\S]*box open/));
  screen.press("C-d");
  await sleep(500);
}

try {
  mkdirSync(workspace);
  draw("demo", "harness demo in a terminal", ["$ ./start.sh demo", "", ...printed(["demo"])]);
  cpSync(path.join(import.meta.dirname, "picture.jsonl"), scene);
  cpSync(path.join(root, "examples", "broken-sum"), workspace, { recursive: true });
  await chat();
  draw("report", "harness report in a terminal", [
    "$ harness report",
    "",
    ...printed(["report"]).map(anywhere),
  ]);
} finally {
  rmSync(home, { recursive: true });
}
