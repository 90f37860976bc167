import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import test, { after, describe } from "node:test";
import { Parser } from "@oclif/core";
import {
  argKind,
  type CommandCatalogue,
  completionAt,
  flagKind,
  typedLine,
} from "../../src/cli/completion-answer.ts";
import { type Shell, SHELLS } from "../../src/cli/commands/completion.ts";
import { routed } from "../../src/cli/command.ts";
import { openStore } from "../../src/sessions/session-store.ts";
import { ABOUT } from "../contract/store-words.ts";
import { COMPILED } from "../fixtures/cli.ts";
import { commandClasses } from "../fixtures/command-classes.ts";
import { scratch } from "../fixtures/scratch.ts";
import { ROOT } from "./package.ts";

const json = (file: string): unknown => JSON.parse(readFileSync(path.join(ROOT, file), "utf8"));
const { commands } = json("oclif.manifest.json") as Pick<CommandCatalogue, "commands">;
const { oclif } = json("package.json") as { oclif: Pick<CommandCatalogue, "topics"> };
const catalogue: CommandCatalogue = { commands, topics: oclif.topics };
const shown = Object.entries(commands).filter(([, { hidden }]) => hidden !== true);

const place = await scratch({
  "here/src/main.ts": "",
  "here/notes.md": "",
  "home/.config/harness/config.json": '{"chat_model": "house:7b", "mcp": {"tracker": {"command": ["x"]}}}',
});
after(() => place[Symbol.asyncDispose]());

/** What would happen if any of it were read as a command, or reached the terminal as it is. */
const HOSTILE = [
  `$(touch ${place.at("pwned")})`,
  `\`touch ${place.at("pwned")}\``,
  `'; touch ${place.at("pwned")}; '`,
  "\u001B]52;c;aGk=\u0007\u001B[2J",
  "one\nfiles\n--evil\tline",
  "%F{red}%n $HOME ~root",
  "\u202Egnihtemos",
];

const ids: string[] = [];
{
  using store = openStore(place.at("home/.local/state/harness"));
  for (const title of HOSTILE)
    ids.push(store.create({ ...ABOUT, workspace: place.at("here"), title, model: title }).id);
}

/** Each shell as a person has it, but for a terminal: it loads the script and says what it would offer for a line. */
const ASK: Readonly<Record<Shell, string>> = {
  bash: String.raw`
    source /dev/stdin <<<"$SCRIPT"
    # As readline has them: it breaks words at = and : too.
    while IFS= read -r line; do
      COMP_LINE=$line COMP_POINT=${"$"}{#line}
      word=${"$"}{line##* }
      _harness_completion harness "${"$"}{word##*[=:]}" ""
      printf '%s\n' "${"$"}{COMPREPLY[@]}" "---"
    done <<<"$LINES_ASKED"`,
  zsh: String.raw`
    compadd() { local shown=$argv[(i)-d]; print -rl -- "${"$"}{(@P)argv[-1]}"; print -rl -- "${"$"}{(@P)argv[shown+1]}" >&2 }
    compset() { PREFIX=${"$"}{PREFIX#*=} }
    _files() { [[ "$1" == -/ ]] && print -rl -- $PREFIX*(N-/) || print -rl -- $PREFIX*(N) }
    eval "$SCRIPT"
    while IFS= read -r line; do
      words=("${"$"}{(@s: :)line}"); CURRENT=$#words; PREFIX=$words[CURRENT]
      _harness
      print -r -- "---"
    done <<<"$LINES_ASKED"`,
  fish: String.raw`
    echo "$SCRIPT" | source
    for line in (string split \n -- "$LINES_ASKED")
      for found in (complete -C "$line")
        echo (string split -f1 \t -- $found)
        echo $found >&2
      end
      echo ---
    end`,
};

const START: Readonly<Record<Shell, readonly string[]>> = {
  bash: ["bash", "--noprofile", "--norc", "-c"],
  zsh: ["zsh", "-f", "-c"],
  fish: ["fish", "--no-config", "-c"],
};

interface Told {
  readonly offered: readonly (readonly string[])[];
  readonly stderr: string;
}

const script = (shell: Shell): string =>
  execFileSync(path.join(ROOT, "bin/harness"), ["completion", shell], {
    encoding: "utf8",
    env: { ...COMPILED, PATH: process.env["PATH"], HOME: place.at("home") },
  });

/** What this shell offers for each line. */
function offered(shell: Shell, lines: readonly string[]): Told {
  const [program = "", ...words] = START[shell];
  const ended = spawnSync(program, [...words, ASK[shell]], {
    cwd: place.at("here"),
    encoding: "utf8",
    timeout: 120_000,
    env: {
      ...COMPILED,
      PATH: `${path.join(ROOT, "bin")}:${process.env["PATH"]}`,
      HOME: place.at("home"),
      LC_ALL: "C.UTF-8",
      SCRIPT: script(shell),
      LINES_ASKED: lines.join("\n"),
    },
  });
  assert.equal(ended.status, 0, ended.stderr);
  const answers = ended.stdout.split(/^---\n/m).slice(0, -1);
  return {
    offered: answers.map((text) => text.split("\n").filter((row) => row !== "")),
    stderr: ended.stderr,
  };
}

const absent = (shell: Shell): string | false =>
  spawnSync(shell, ["-c", "true"]).status !== 0 && `${shell} is not installed here`;

const sorted = (words: readonly string[]): readonly string[] => words.toSorted();

for (const shell of SHELLS)
  describe(`completion of ${shell}`, { skip: absent(shell) }, () => {
    test("every command is offered after its topic", () => {
      const topics = [...new Set(shown.map(([id]) => id.split(":").slice(0, -1).join(" ")))];
      const lines = topics.map((topic) => (topic === "" ? "harness " : `harness ${topic} `));
      const told = offered(shell, lines);
      const found = new Set(
        told.offered.flatMap((words, at) => words.map((each) => `${topics[at]} ${each}`.trim())),
      );
      const wanted = shown.map(([id]) => id.replaceAll(":", " "));
      assert.deepEqual(
        wanted.filter((each) => !found.has(each)),
        [],
      );
      assert.ok(!found.has("setup") && !found.has("teardown"));
    });

    test("flags, values, models, settings, folders and files are offered where they fit", () => {
      const head = shell === "bash" ? "" : "--mode=";
      const cases: Readonly<Record<string, readonly string[]>> = {
        "harness run --max-tu": ["--max-turns"],
        "harness run --mode r": ["read-only"],
        "harness run --mode=r": [`${head}read-only`],
        "harness --provider a": ["anthropic"],
        "harness run --model house": ["house:7b"],
        "harness config set mem": ["memory"],
        "harness config set isolation o": ["overlay"],
        "harness config set canaries ": ["true", "false"],
        "harness mcp logs ": ["tracker"],
        "harness completion z": ["zsh"],
        "harness bogus ": [],
        "harness run --mode bogus": [],
      };
      const told = offered(shell, Object.keys(cases));
      assert.deepEqual(told.offered.map(sorted), Object.values(cases).map(sorted));
      const paths = ["harness index s", "harness policy test n", "harness policy test --rules n"];
      const [folders = [], files = [], rules = []] = offered(shell, paths).offered;
      assert.match(folders.join(), /^src\/?$/);
      assert.deepEqual([files, rules], [["notes.md"], ["notes.md"]]);
    });

    test("sessions are offered by id, and their titles are only text", () => {
      const told = offered(shell, [
        "harness sessions show ",
        "harness run --model one",
        "harness resume $(touch pwned) ",
      ]);
      const [sessions = [], models, none] = told.offered;
      assert.deepEqual(sessions.toSorted(), ids.toSorted());
      assert.deepEqual([models, none], [[], []]);
      assert.ok(!existsSync(place.at("pwned")) && !existsSync(place.at("here/pwned")));
      assert.doesNotMatch(told.stderr, /[\u0000-\u0008\u000B-\u001F\u202E]/);
    });
  });

test("after a colon bash is offered the rest of a model's name", { skip: absent("bash") }, () => {
  const told = offered("bash", ["harness run --model house:", "harness run --model=house:7"]);
  assert.deepEqual(told.offered, [["7b"], ["7b"]]);
});

test("a line that names another harness runs the one on PATH", { skip: absent("bash") }, async () => {
  await place.write("here/harness", `#!/bin/sh\ntouch ${place.at("started")}\n`, 0o755);
  assert.deepEqual(offered("bash", ["./harness completion z"]).offered, [["zsh"]]);
  assert.ok(!existsSync(place.at("started")));
});

/** What only the person knows; every other value is offered, or left to the shell. */
const FREE = new Set(
  "--allow --attempt --attempts --base-url --because --check --cpus --deny --diff --edit --engine --env --from --header --image --jobs --limit --max-cost --max-time --max-tokens --max-tool-calls --max-turns --memory --on --only --park-timeout --pids --prompt --query --retries --runtime --since --tag --timeout --times --title --to --url --yes prompt query text title mcp:add.name sandbox:rm.id sessions:checkpoints.state".split(
    " ",
  ),
);

describe("of the commands", () => {
  for (const [id, command] of Object.entries(commands))
    test(`${id}: it has a summary and an example, and its flags and values are completed`, () => {
      const words = id.split(":");
      assert.ok((command.summary ?? "").length > 10);
      assert.ok((command.examples ?? []).length > 0, "no example");
      const line = typedLine(`harness ${words.join(" ")} -`);
      const flags = completionAt(line, catalogue).words.map(({ value }) => value);
      // Internal flags are not typed by anybody.
      const typed = Object.entries(command.flags).filter(([, { hidden }]) => hidden !== true);
      assert.deepEqual(flags, [...typed.map(([name]) => `--${name}`), "--help"]);
      const free = [
        ...typed.flatMap(([name, flag]) =>
          flag.type === "option" && flag.options === undefined && flagKind(name, flag) === "free"
            ? [`--${name}`]
            : [],
        ),
        ...Object.entries(command.args).flatMap(([name, { options }]) =>
          options === undefined && argKind(id, name) === "free"
            ? [FREE.has(name) ? name : `${id}.${name}`]
            : [],
        ),
      ];
      assert.deepEqual(
        free.filter((each) => !FREE.has(each)),
        [],
      );
    });

  test("used flags and excluded ones are not offered again, and words after -- belong to another command", () => {
    const offers = (text: string): readonly string[] =>
      completionAt(typedLine(`harness ${text}`), catalogue).words.map(({ value }) => value);
    assert.ok(offers("run --co").includes("--continue"));
    for (const [line, flag] of [
      ["run --continue --", "--continue"],
      ["run --resume x --", "--continue"],
      ["run -q --", "--quiet"],
      ["run --mode=read-only --", "--mode"],
    ] as const)
      assert.ok(!offers(line).includes(flag), `${flag} after ${line}`);
    assert.ok(offers("run --allow-domain npm --").includes("--allow-domain"));
    assert.equal(completionAt(typedLine("harness sandbox exec -- --"), catalogue).kind, "files");
    assert.equal(completionAt(typedLine("harness sessions rm a b "), catalogue).kind, "sessions");
    assert.deepEqual(offers("sessions show a "), []);
    assert.deepEqual(offers("sessions --bu"), offers("sessions list --bu"));
    for (const command of ["sessions", "sessions list", "sessions show", "report", "diff", "replay"])
      assert.equal(completionAt(typedLine(`harness ${command} --bundle `), catalogue).kind, "files", command);
  });
});

/** Its own parser reads the examples. */
const known = await commandClasses();

/** The words after `harness` of our command in a line, without pipes and redirections. */
function wordsOf(example: string): readonly string[] {
  const { before, current } = typedLine(`x ${example}`);
  const words = [...before, current];
  const start = words.indexOf("harness");
  assert.notEqual(start, -1, `no harness in: ${example}`);
  const rest = words.slice(start + 1);
  const end = rest.findIndex((each) => /^(?:[|<>]|&&|2>|;)/.test(each));
  return end === -1 ? rest : rest.slice(0, end);
}

describe("an example", () => {
  for (const [id, { examples = [] }] of Object.entries(commands))
    for (const example of examples)
      test(example, async () => {
        const words = routed(wordsOf(example));
        const named = id.split(":");
        const own = id === "chat" && words[0] !== "chat" ? words : words.slice(named.length);
        if (own !== words) assert.deepEqual(words.slice(0, named.length), named);
        const command = known.get(id);
        assert.ok(command !== undefined, `no class of ${id}`);
        const dashes = own.indexOf("--");
        const argv = [...(dashes === -1 || command.usage === undefined ? own : own.slice(0, dashes))];
        await Parser.parse(argv, {
          args: command.args,
          flags: { ...command.baseFlags, ...command.flags },
          strict: command.strict,
          "--": true,
        });
      });
});
