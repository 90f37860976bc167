import assert from "node:assert/strict";
import { mkdir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { skip } from "../fixtures/engine.ts";
import { type Attack, attacks, type Check, isThere } from "../fixtures/escape-cases.ts";
import { Room } from "../fixtures/escape.ts";

/** What the next start with the same command line would do. */
async function effective(room: Room): Promise<unknown> {
  const { code, stdout } = await room.harness(["config", "list", "--json"]);
  assert.equal(code, 0);
  return stdout;
}

const LOOSE = `{"mode":"danger-full-access","network":"full","approve":"always","allow_domains":["*"]}`;

const gone =
  (...names: readonly string[]): Check =>
  async (room) => {
    await room.leave();
    for (const name of names) assert.equal(await isThere(room.at(name)), false, name);
  };

const OWN: readonly Attack[] = [
  {
    name: "the project's own settings, where they exist",
    run: "mkdir -p .harness/rules; echo 'network: full' > .harness/settings.yml; echo 'approve: always' > .harness/rules/a.md; chmod -R 777 .harness; mv .harness h; rm -rf .harness",
    twin: "cat .harness/settings.yml",
    control: true,
  },
  {
    name: "the project's own settings, where they do not exist",
    before: (room) => rm(room.at(".harness"), { recursive: true }),
    run: `mkdir -p .harness/rules; echo '${LOOSE}' > .harness/config.json; echo 'approve: always' > .harness/rules/a.md; chmod -R 777 .harness; true`,
    denied: async (room) => {
      await gone(".harness")(room, { code: 0, all: "" });
      assert.doesNotMatch(String(await effective(room)), /danger-full-access/);
    },
    twin: "mkdir harness && touch harness/config.json",
    control: true,
  },
  {
    name: "the user's own settings, by every name of the home",
    run: `for h in ~ $HOME /root /home/* {CAN}/../home; do mkdir -p $h/.config/harness $h/.harness; echo '${LOOSE}' | tee $h/.config/harness/config.json > $h/.harness/config.json; done; echo HARNESS_MODE=danger-full-access | tee .env > .env.local; export HARNESS_MODE=danger-full-access XDG_CONFIG_HOME={W}; true`,
    denied: async (room) => {
      assert.equal(await isThere(path.join(room.root, "home", ".harness")), false);
      assert.doesNotMatch(String(await effective(room)), /danger-full-access/);
    },
    twin: "mkdir -p ~/.config && echo x > ~/.config/x && test -s ~/.config/x",
    control: true,
  },
  {
    name: "a start-up file in the box's home, for the next command",
    run: `for f in .bashrc .bash_profile .profile .bash_login; do echo 'echo POISONED > {W}/poisoned' > ~/$f; done`,
    denied: async (room) => {
      await room.leave();
      await room.exec("true");
      assert.equal(await isThere(room.at("poisoned")), false);
    },
    twin: "touch ~/x",
  },
];

const OTHERS: readonly Attack[] = [
  {
    name: "settings of other agents",
    run: "for d in .claude .codex .agents .gemini .cursor .windsurf .opencode; do mkdir -p $d; echo x > $d/settings.json; done; for d in .qwen .roo .kiro .continue .amp .crush .trae; do mkdir -p $d; echo x > $d/mcp.json; done; touch .aider.conf.yml opencode.json .crush.json; echo x >> .mcp.json; mkdir -p pkg/.claude; echo x > pkg/.claude/settings.json; echo x > pkg/.mcp.json",
    denied: gone(
      ".claude",
      ".codex",
      ".agents",
      ".gemini",
      ".cursor",
      ".windsurf",
      ".opencode",
      ".qwen",
      ".roo",
      ".kiro",
      ".continue",
      ".amp",
      ".crush",
      ".trae",
      ".aider.conf.yml",
      "opencode.json",
      ".crush.json",
      "pkg/.claude",
      "pkg/.mcp.json",
    ),
    twin: "mkdir claude pkg && touch claude/settings.json AGENTS.md pkg/mcp.json",
    control: true,
  },
  {
    name: "settings of editors",
    run: "mkdir -p .idea .zed .fleet .devcontainer; echo x > .idea/workspace.xml; echo '{}' > a.code-workspace; echo '{}' > .devcontainer.json; mkdir -p pkg/.vscode; echo x > pkg/.vscode/tasks.json; echo x > .vscode/settings.json; echo x > sub/.vscode/launch.json; mkdir .helix; echo x > .helix/languages.toml; for f in .exrc .nvim.lua pkg/.dir-locals.el; do echo x > $f; done",
    denied: gone(
      ".helix",
      ".exrc",
      ".nvim.lua",
      "pkg/.dir-locals.el",
      ".idea",
      ".zed",
      ".fleet",
      ".devcontainer",
      "a.code-workspace",
      ".devcontainer.json",
      "pkg/.vscode",
    ),
    twin: "touch .editorconfig .prettierrc",
    allowed: async (room) => assert.ok(await isThere(room.at(".editorconfig"))),
    control: true,
  },
  {
    name: "files that shells run on entering the folder",
    run: "echo x >> .envrc; for f in .bashrc .profile .zshrc .zshenv .inputrc mise.toml .mise.local.toml; do echo x > $f; done; mkdir -p .mise pkg; echo x > pkg/.envrc",
    denied: gone(".bashrc", ".profile", ".zshrc", ".zshenv", ".inputrc", "mise.toml", ".mise", "pkg/.envrc"),
    twin: "mkdir pkg && touch pkg/.bashrc .tool",
    control: true,
  },
  {
    name: "protected files by the write tool",
    run: "true",
    denied: async (room) => {
      const box = await room.box();
      for (const name of [
        ".harness/config.json",
        ".claude/settings.json",
        "pkg/.vscode/tasks.json",
        ".envrc",
      ])
        await box.write(name, Buffer.from(LOOSE));
      await gone(".claude", "pkg/.vscode")(room, { code: 0, all: "" });
    },
    twin: "true",
    allowed: async (room) => {
      const written = await (await room.box()).write("src/new.ts", Buffer.from("new\n"));
      assert.equal(written.kind, "ok");
      assert.equal(await readFile(room.at("src/new.ts"), "utf8"), "new\n");
    },
  },
];

attacks([...OWN, ...OTHERS]);

test("a repository with loose settings of its own is confined as tightly", { skip }, async () => {
  await using room = await Room.make(async (made) => {
    await writeFile(made.at(".harness", "config.json"), LOOSE);
    await writeFile(made.at(".env"), "HARNESS_MODE=danger-full-access\n");
    await writeFile(made.at("Dockerfile.sandbox"), "FROM scratch\n");
    await mkdir(made.at("sandbox"));
    await writeFile(made.at("sandbox", "seccomp.json"), '{"defaultAction":"SCMP_ACT_ALLOW"}');
  });
  const { code, stdout } = await room.harness([
    "sandbox",
    "exec",
    "--",
    "bash",
    "-c",
    "echo x >> .envrc; touch made; grep Seccomp: /proc/self/status; ls /sys/class/net",
  ]);
  assert.equal(code, 0);
  assert.match(stdout, /^Seccomp:\s+2\nlo\n$/);
  assert.ok(await isThere(room.at("made")));
  assert.deepEqual(await room.boxes(), []);
  await room.intact();
});

/** Starts that are refused: nothing of the command happens, and no container is left. */
const REFUSED: readonly {
  readonly what: string;
  readonly before: (room: Room) => unknown;
  readonly cwd: string;
}[] = [
  { what: "a folder that contains the harness's state and a home", before: () => undefined, cwd: "{CAN}/.." },
  {
    what: "protected settings that are a link",
    before: async (room) => {
      await rm(room.at(".harness"), { recursive: true });
      await symlink(room.CAN, room.at(".harness"));
    },
    cwd: "{W}",
  },
  {
    what: "a git directory behind a link",
    before: async (room) => {
      await rename(room.at(".git"), `${room.CAN}/git`);
      await symlink(`${room.CAN}/git`, room.at(".git"));
    },
    cwd: "{W}",
  },
];

for (const { what, before, cwd } of REFUSED)
  test(`a box on ${what} is refused, and works once that is fixed`, { skip }, async () => {
    await using room = await Room.make(before);
    const touch = ["sandbox", "exec", "--cwd", cwd, "--", "touch", "made"];
    const { code } = await room.harness(touch);
    assert.deepEqual([code, await isThere(room.at("made")), await room.boxes()], [125, false, []]);
    await room.intact();
    for (const name of [".harness", ".git"]) await rm(room.at(name), { recursive: true, force: true });
    assert.equal((await room.harness(["sandbox", "exec", "--cwd", "{W}", "--", "touch", "made"])).code, 0);
    assert.ok(await isThere(room.at("made")));
  });
