import assert from "node:assert/strict";
import { mkdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import test from "node:test";
import { type ExtensionParts, openExtensions } from "../../../src/app/project/open-extensions.ts";
import { expandedPrompt, skillsAndCommands } from "../../../src/app/project/skills-and-commands.ts";
import { hostFrom } from "../../../src/app/host.ts";
import { readTrust, trustByHash } from "../../../src/app/project/project-trust.ts";
import { DEFAULTS } from "../../../src/config/settings-schema.ts";
import type { EventBody } from "../../../src/core/events.ts";
import type { Box } from "../../../src/core/ports.ts";
import { fakeBox } from "../../fakes/box.ts";
import { scratch } from "../../fixtures/scratch.ts";

const skill = (name: string, body = `Do ${name}.`): string =>
  `---\nname: ${name}\ndescription: About ${name}.\n---\n${body}\n`;

/** A home with a workspace next to it, as a run or a chat would open it. */
async function household(files: Readonly<Record<string, string>>) {
  const place = await scratch({ "w/a.txt": "a\n", "home/.keep": "", ...files });
  const host = hostFrom({ HOME: place.at("home") });
  const workspace = place.at("w");
  return {
    place,
    at: place.at,
    host,
    workspace,
    open: async (box?: Box) => {
      const said: string[] = [];
      const events: EventBody[] = [];
      const parts: ExtensionParts = {
        host,
        settings: DEFAULTS,
        origins: {},
        workspace,
        session: "s",
        requests: {
          send: () => Promise.reject(new Error("nothing is asked of anybody")),
          serviceAt: () => assert.fail("no question is asked"),
        },
        box: () =>
          box === undefined ? Promise.reject(new Error("no box was wanted")) : Promise.resolve(box),
        emit: (event: EventBody) => void events.push(event),
        warn: (text: string) => void said.push(text),
        signal: new AbortController().signal,
      };
      const opened = await openExtensions(parts);
      const notices = events.flatMap((event) => (event.type === "notice" ? [event.text] : []));
      return { opened, names: opened.tools().map(({ name }) => name), prompt: opened.prompt, said, notices };
    },
    trust: async () => {
      const seen = await readTrust(host, workspace);
      await trustByHash(host, seen, seen.shown.hash);
    },
    told: async () => (await readTrust(host, workspace)).shown,
    words: () => skillsAndCommands(host, workspace),
    expand: async (prompt: string) => {
      const notes: string[] = [];
      const text = await expandedPrompt(host, workspace, prompt, (note) => void notes.push(note));
      return { text, notes: notes.join("\n") };
    },
    [Symbol.asyncDispose]: () => place[Symbol.asyncDispose](),
  };
}

const LAYOUTS = [".harness", ".agents", ".claude"];
const OWN = ["home/.config/harness", "home/.agents", "home/.claude"];

test("without skills nothing is added", async () => {
  await using here = await household({ "w/.claude/settings.json": "{}" });
  const { names, prompt, said, notices } = await here.open();
  assert.deepEqual([names, prompt, said, notices], [[], "", [], []]);
});

test("the user's skills are offered from each of their folders, and the first of a name is used", async () => {
  for (const folder of OWN) {
    await using here = await household({ [`${folder}/skills/pdf/SKILL.md`]: skill("pdf") });
    const { names, prompt, said, notices } = await here.open();
    assert.deepEqual([names, said, notices], [["skill"], [], []], folder);
    assert.match(prompt, /Of the user:\n- pdf: "About pdf\."$/);
  }
  await using here = await household(
    Object.fromEntries(
      OWN.map((folder, at) => [`${folder}/skills/pdf/SKILL.md`, skill("pdf", `From ${at}.`)]),
    ),
  );
  const { prompt, said } = await here.open();
  assert.equal(prompt.match(/- pdf/g)?.length, 1);
  assert.match(
    said.join("\n"),
    /2 skills are ignored: .*\.agents\/skills\/pdf\/SKILL\.md \(pdf already exists: .*\.config\/harness\/skills\/pdf\/SKILL\.md is used\)/,
  );
});

for (const layout of LAYOUTS)
  test(`a project's ${layout}/skills are active only while they are trusted and unchanged`, async () => {
    const file = `w/${layout}/skills/tidy/SKILL.md`;
    await using here = await household({
      [file]: skill("tidy"),
      [`w/${layout}/skills/tidy/more.md`]: "More.\n",
    });
    const untrusted = await here.open();
    assert.deepEqual([untrusted.names, untrusted.prompt], [[], ""]);
    assert.equal(untrusted.notices.length, 1);
    assert.match(untrusted.notices[0] ?? "", /tidy\/SKILL\.md \(it is not trusted\); harness trust/);

    await here.trust();
    const trusted = await here.open();
    assert.deepEqual([trusted.names, trusted.notices], [["skill"], []]);
    assert.match(trusted.prompt, /Of the repository\.[^\n]*\n- tidy: "About tidy\."$/);
    // What was trusted is what is read, whatever the file holds by then.
    await writeFile(here.at(file), skill("tidy", "Do harm."));
    const prepared = trusted.opened.tools()[0]?.prepare({ name: "tidy", file: "more.md" });
    assert.ok(prepared?.kind === "prepared");
    const result = await prepared
      .state()
      .run(() => Promise.reject(new Error("no box")), new AbortController().signal);
    assert.match(result.text, /More\.$/m);

    const changed = await here.open();
    assert.deepEqual([changed.names, changed.prompt], [[], ""]);
    assert.match(changed.notices.join(), /it has changed since it was trusted/);
  });

test("a trusted skill yields the body that was trusted, even if the file has changed", async () => {
  await using here = await household({ "w/.claude/skills/tidy/SKILL.md": skill("tidy", "Do good.") });
  await here.trust();
  const { opened } = await here.open();
  await writeFile(here.at("w/.claude/skills/tidy/SKILL.md"), skill("tidy", "Do harm."));
  const prepared = opened.tools()[0]?.prepare({ name: "tidy" });
  assert.ok(prepared?.kind === "prepared");
  const { text } = await prepared
    .state()
    .run(() => Promise.reject(new Error("no box")), new AbortController().signal);
  assert.match(text, /Do good\./);
  assert.doesNotMatch(text, /harm/);
});

test("a project cannot replace a skill or a command of the user", async () => {
  await using here = await household({
    "home/.claude/skills/tidy/SKILL.md": skill("tidy", "Mine."),
    "w/.harness/skills/Tidy/SKILL.md": skill("Tidy", "Theirs."),
    "home/.claude/commands/ship.md": "My shipping.\n",
    "w/.claude/commands/SHIP.md": "Their shipping.\n",
  });
  await here.trust();
  const { prompt, said } = await here.open();
  assert.doesNotMatch(prompt, /Of the repository|Tidy/);
  assert.match(said.join(), /Tidy\/SKILL\.md \(tidy already exists/);
  assert.equal((await here.expand("/ship")).text, "My shipping.");
  const { problems } = await here.words();
  assert.match(
    problems.map(({ file, why }) => `${file}: ${why}`).join("\n"),
    /SHIP\.md: ship already exists/,
  );
});

test("several layouts of one project are trusted as one, and links between them are not separate", async () => {
  await using here = await household({
    "w/.agents/skills/a/SKILL.md": skill("a"),
    "w/.harness/skills/b/SKILL.md": skill("b"),
    "w/.agents/commands/x.md": "X.\n",
  });
  await mkdir(here.at("w/.claude/skills"), { recursive: true });
  await symlink("../../.agents/skills/a", here.at("w/.claude/skills/a"));
  await symlink("../.agents/commands", here.at("w/.claude/commands"));
  const { items } = await here.told();
  assert.deepEqual(
    items.map(({ kind, problem, files }) => [kind, problem, files]),
    [
      ["skills", null, [".agents/skills/a/SKILL.md", ".harness/skills/b/SKILL.md"]],
      ["commands", null, [".agents/commands/x.md"]],
    ],
  );
  await here.trust();
  const { prompt } = await here.open();
  assert.deepEqual(prompt.match(/^- \w+/gm), ["- b", "- a"]);
  assert.equal((await here.expand("/x")).text, "X.");
  // A link to anything else spoils it, as ever.
  await symlink(here.at("home"), here.at("w/.claude/skills/out"));
  assert.match((await here.told()).items[0]?.problem ?? "", /it is a link/);
  assert.deepEqual((await here.open()).names, []);
});

test("a folder that appears in another layout requires trust again", async () => {
  await using here = await household({ "w/.harness/skills/a/SKILL.md": skill("a") });
  await here.trust();
  assert.deepEqual((await here.open()).names, ["skill"]);
  await mkdir(here.at("w/.claude/skills/b"), { recursive: true });
  await writeFile(here.at("w/.claude/skills/b/SKILL.md"), skill("b"));
  assert.deepEqual((await here.open()).names, []);
  await rm(here.at("w/.claude"), { recursive: true });
  assert.deepEqual((await here.open()).names, ["skill"], "the twin");
});

test("a skill hidden from the model is neither listed nor offered, and can be typed", async () => {
  const manual = skill("deploy", "Deploy $1.").replace(
    "---\nDeploy",
    "disable-model-invocation: true\n---\nDeploy",
  );
  await using here = await household({ "home/.claude/skills/deploy/SKILL.md": manual });
  assert.deepEqual((await here.open()).names, []);
  assert.equal((await here.expand("/deploy prod")).text, "Deploy prod.");
  const { skills, commands } = await here.words();
  assert.deepEqual([skills.length, commands.map(({ name }) => name)], [0, ["deploy"]]);
});

test("a prompt that names a command expands to its text, and any other stays unchanged", async () => {
  await using here = await household({
    "home/.config/harness/commands/fix.md": "---\ndescription: Fixes.\n---\nFix $ARGUMENTS, then test.\n",
    "home/.claude/commands/git/commit.md": "Commit.\n",
  });
  const fix = await here.expand("/fix the parser");
  assert.equal(fix.text, "Fix the parser, then test.");
  assert.match(fix.notes, /\/fix sends the text in .*fix\.md, yours/);
  assert.equal((await here.expand("/git:commit")).text, "Commit.");
  for (const prompt of ["/other thing", "/etc/hosts is wrong", "fix /fix", "/", "/fix: it"])
    assert.deepEqual(await here.expand(prompt), { text: prompt, notes: "" });
});

test("an untrusted or changed command of a project is not expanded, with a notice", async () => {
  await using here = await household({ "w/.claude/commands/ship.md": "Ship it.\n" });
  const before = await here.expand("/ship now");
  assert.equal(before.text, "/ship now");
  assert.match(
    before.notes,
    /commands of the project are ignored: .*ship\.md \(it is not trusted\); next: harness trust/,
  );
  assert.equal((await here.expand("look at /ship")).notes, "");
  await here.trust();
  assert.equal((await here.expand("/ship now")).text, "Ship it.\n\nArguments: now");
  await writeFile(here.at("w/.claude/commands/ship.md"), "rm -rf everything\n");
  const after = await here.expand("/ship now");
  assert.deepEqual([after.text, /has changed/.test(after.notes)], ["/ship now", true]);
});

test("trust shows everything that would take effect", async () => {
  await using here = await household({
    "w/.claude/skills/pdf/SKILL.md": `---\nname: forms\ndescription: >-\n  Fills\n  forms.\n---\nFill.\n`,
    "w/.claude/skills/pdf/run.sh": "curl example.org\n",
    "w/.claude/skills/bad/SKILL.md": "no front matter\n",
    "w/.claude/skills/none/notes.md": "notes\n",
    "w/.claude/skills/README.md": "readme\n",
    "w/.agents/commands/git/commit.md": "---\ndescription: 'Commits.'\n---\nCommit $1\n",
    "w/.agents/commands/x.sh": "echo x\n",
  });
  const does = new Set((await here.told()).items.flatMap(({ does: each }) => each.map(({ text }) => text)));
  for (const text of [
    "offers the model the skill forms: Fills forms.",
    ".claude/skills/pdf/run.sh: curl example.org",
    "bad is not a usable skill: its front matter has no description",
    "none is not a skill: it has no SKILL.md",
    ".claude/skills/README.md: readme",
    "/git:commit in a chat sends for you (Commits.):",
    ".agents/commands/git/commit.md: Commit $1",
    ".agents/commands/x.sh is not a command, but is trusted too:",
    ".agents/commands/x.sh: echo x",
  ])
    assert.ok(does.has(text), `${text}\n${[...does].join("\n")}`);
});

test("the home folder is not a project: its contents are the user's own", async () => {
  await using here = await household({});
  await here.place.write("home/.claude/skills/a/SKILL.md", skill("a"));
  await rename(here.at("w"), here.at("home/w"));
  const { items } = (await readTrust(here.host, here.at("home"))).shown;
  assert.deepEqual(items, []);
});

test("binary files of a trusted skill are copied into the box as they were trusted, and never given to the model", async () => {
  await using here = await household({ "w/.claude/skills/pdf/SKILL.md": skill("pdf") });
  const [logo, font] = [here.at("w/.claude/skills/pdf/logo.png"), here.at("w/.claude/skills/pdf/font.woff2")];
  const bytes = Buffer.from([0x89, 0x50, 0xff, 0x00]);
  await writeFile(logo, bytes);
  await writeFile(font, bytes);
  await here.trust();
  const written = new Map<string, Buffer>();
  const box: Box = {
    ...fakeBox({ commands: { sh: () => 0 } }),
    write: (file, content) => {
      written.set(file.split("/").at(-1) ?? "", Buffer.from(content));
      return Promise.resolve({ kind: "ok", value: null });
    },
  };
  const { opened } = await here.open(box);
  const [tool] = opened.tools();
  const call = async (args: object): Promise<string> => {
    const prepared = tool?.prepare(args);
    assert.ok(prepared?.kind === "prepared");
    return (await prepared.state().run(() => Promise.resolve(box), new AbortController().signal)).text;
  };
  // Between the trust that counts for the run and the call.
  await writeFile(font, Buffer.from([0x89, 0x50, 0xff, 0x01]));
  const said = await call({ name: "pdf" });
  assert.match(said, /changed since they were trusted\): "font\.woff2"/);
  assert.deepEqual([...written], [["logo.png", bytes]]);
  assert.match(await call({ name: "pdf", file: "logo.png" }), /logo\.png is not text/);
  const { names, notices } = await here.open();
  assert.deepEqual(names, []);
  assert.match(notices.join(), /has changed since it was trusted/);
});
