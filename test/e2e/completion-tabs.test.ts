import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import path from "node:path";
import test, { after } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { type Shell, SHELLS } from "../../src/cli/commands/completion.ts";
import { openStore } from "../../src/sessions/session-store.ts";
import { ABOUT } from "../contract/store-words.ts";
import { COMPILED } from "../fixtures/cli.ts";
import { scratch } from "../fixtures/scratch.ts";
import { noScreen } from "./drawn-chat.ts";
import { ROOT } from "./package.ts";

/** A person's shell on a terminal, and its own tab: what stands on the line then, and in the list below. */

const run = promisify(execFile);
const PATIENCE_MS = 60_000;

const place = await scratch({
  "here/a b/in side.txt": "",
  "here/it's here.md": "",
  "here/do$(touch pwned).md": "",
  "here/back`touch pwned`.md": "",
  "here/semi;touch pwned.md": "",
  "here/dir d'q/.keep": "",
  "home/.config/harness/config.json": '{"chat_model": "house:7b"}',
});
after(() => place[Symbol.asyncDispose]());

const TITLES = [
  "$(touch pwned)",
  "`touch pwned`",
  "'; touch pwned; '",
  "\u001B]52;c;aGk=\u0007\u001B[2J",
  "one\nfiles\n--evil\tline",
  "%F{red}%n $HOME",
];
{
  using store = openStore(place.at("home/.local/state/harness"));
  for (const title of TITLES) store.create({ ...ABOUT, workspace: place.at("here"), title, model: title });
}

const START: Readonly<Record<Shell, readonly string[]>> = {
  bash: ["bash", "--noprofile", "--norc"],
  zsh: ["zsh", "-f"],
  fish: ["fish", "--no-config"],
};

const LOAD: Readonly<Record<Shell, string>> = {
  bash: `PS1='> '; eval "$(harness completion bash)"; clear`,
  zsh: `PS1='> '; autoload -U compinit; compinit -u -D; eval "$(harness completion zsh)"; clear`,
  fish: `function fish_prompt; echo '> '; end; harness completion fish | source; clear`,
};

async function person(shell: Shell) {
  const socket = place.at(`${shell}.sock`);
  const tmux = async (...words: readonly string[]): Promise<string> =>
    (await run("tmux", ["-S", socket, "-f", "/dev/null", ...words], { timeout: PATIENCE_MS })).stdout;
  const env = {
    ...COMPILED,
    PATH: `${path.join(ROOT, "bin")}:${process.env["PATH"]}`,
    HOME: place.at("home"),
    LC_ALL: "C.UTF-8",
  };
  // tmux would start it with a PATH of its own.
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  const at = ["-x", "110", "-y", "40", "-c", place.at("here")];
  await tmux("new-session", "-d", ...at, "env", ...variables, ...START[shell]);
  const until = async (wanted: (text: string) => boolean, what: string): Promise<string> => {
    const over = AbortSignal.timeout(PATIENCE_MS);
    for (;;) {
      const text = await tmux("capture-pane", "-p");
      if (wanted(text)) return text;
      if (over.aborted) throw new Error(`${shell}: ${what} never came:\n${text}`);
      await sleep(50);
    }
  };
  await until((text) => /[$%#>] ?$/m.test(text.trimEnd()), "a prompt");
  await tmux("send-keys", "-l", LOAD[shell]);
  await tmux("send-keys", "Enter");
  await until((text) => text.trim() === ">", "an empty screen");
  return {
    /** With the keys behind it, until what is wanted stands there; the line is thrown away then. */
    tab: async (line: string, wanted: (text: string) => boolean, what: string): Promise<string> => {
      await tmux("send-keys", "-l", line);
      await until((text) => text.includes(line.trimEnd()), line);
      await tmux("send-keys", "Tab");
      // More of them list what there is, the third one in bash.
      const more = shell === "bash" ? ["Tab", "Tab"] : ["Tab"];
      if (line.endsWith(" ")) await tmux("send-keys", ...more);
      const shown = await until(wanted, what);
      // No Ctrl-C: it would discard what is typed after it.
      await tmux("send-keys", "C-e", "C-u", "C-l");
      await until((text) => text.trim() === ">", "an empty screen");
      return shown;
    },
    [Symbol.asyncDispose]: async () => void (await tmux("kill-server").catch(() => undefined)),
  };
}

const absent = (shell: Shell): string | false =>
  noScreen || (spawnSync(shell, ["-c", "true"]).status !== 0 && `${shell} is not installed here`);

/** What is typed, and what the line is then; in fish and zsh, which take quotes back, by another name. */
const LINES: readonly (readonly [string, string, Partial<Record<Shell, string>>?])[] = [
  ["harness sess", "harness sessions"],
  ["harness run --mode r", "harness run --mode read-only"],
  ["harness run --model ho", "harness run --model house:7b"],
  ["harness policy test it", String.raw`harness policy test it\'s\ here.md`],
  ["harness policy test 'it", `harness policy test 'it'\\''s here.md`, { fish: `test 'it\\'s here.md'` }],
  ["harness policy test a", String.raw`harness policy test a\ b/`],
  [String.raw`harness policy test a\ b/i`, String.raw`harness policy test a\ b/in\ side.txt`],
  ['harness policy test "a b/', 'harness policy test "a b/in side.txt"'],
  ["harness index --cwd=dir", String.raw`harness index --cwd=dir\ d\'q/`],
  ["harness policy test ~/.conf", "harness policy test ~/.config/"],
  ["harness policy test do", String.raw`harness policy test do\$\(touch\ pwned\).md`],
  [
    "harness policy test back",
    "harness policy test back\\`touch\\ pwned\\`.md",
    { fish: "back`touch\\ pwned`.md" },
  ],
  ["harness policy test semi", String.raw`harness policy test semi\;touch\ pwned.md`],
];

const hasAll = (text: string): boolean => text.split(/\b1n[0-9a-z]{10}\b/).length > TITLES.length;

for (const shell of SHELLS)
  test(
    `a tab in a real ${shell} completes words, quotes paths, and runs nothing`,
    { skip: absent(shell) },
    async () => {
      await using terminal = await person(shell);
      for (const [typed, line, other = {}] of LINES)
        await terminal.tab(typed, (text) => text.includes(other[shell] ?? line), other[shell] ?? line);
      const shown = await terminal.tab("harness sessions show ", hasAll, "the sessions");
      // bash lists the ids alone.
      if (shell !== "bash")
        assert.match(
          shown,
          /\$\(touch pwned\)[^]*%F\{red\}%n \$HOME|%F\{red\}%n \$HOME[^]*\$\(touch pwned\)/,
        );
      assert.deepEqual(
        readdirSync(place.at("here")).filter((name) => name === "pwned"),
        [],
      );
    },
  );
