import assert from "node:assert/strict";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import test from "node:test";
import {
  firstOfEachName,
  type Found,
  ownSkills,
  projectSkills,
  readSkill,
  type Skill,
} from "../../src/extensions/skill-folders.ts";
import { scratch, type Scratch } from "../fixtures/scratch.ts";

const skill = (name: string, more = ""): string =>
  `---\nname: ${name}\ndescription: About ${name}.\n${more}---\n# ${name}\nDo it.\n`;

const own = (place: Scratch): Promise<Found<Skill>> => ownSkills(place.at("skills"), place.at("work"));
const namesOf = ({ all }: Found<Skill>): readonly string[] => all.map(({ name }) => name);
const whyOf = ({ problems }: Found<Skill>): string =>
  problems.map(({ file, why }) => `${file.split("/").slice(-2).join("/")}: ${why}`).join("\n");
const filesOf = async (one: Skill | undefined): Promise<readonly string[]> =>
  ((await one?.files())?.files ?? []).map(({ path }) => path);

test("a folder with a SKILL.md is a skill; its files are those beside it", async () => {
  await using place = await scratch({
    "skills/pdf/SKILL.md": skill("pdf"),
    "skills/pdf/scripts/fill.py": "#!/usr/bin/env python3\n",
    "skills/pdf/forms.md": "Forms.\n",
    "skills/pdf/.git/config": "hidden\n",
    "skills/pdf/node_modules/x/index.js": "others'\n",
    "skills/docx/skill.md": skill("docx"),
    "skills/README.md": "No skill.\n",
    "skills/empty/notes.md": "No skill either.\n",
  });
  const found = await own(place);
  assert.deepEqual([namesOf(found), whyOf(found)], [["docx", "pdf"], ""]);
  const pdf = found.all[1];
  assert.deepEqual(
    { ...pdf, files: 0 },
    {
      name: "pdf",
      description: "About pdf.",
      origin: "user",
      place: place.at("skills/pdf/SKILL.md"),
      body: "# pdf\nDo it.",
      offered: true,
      typed: true,
      hint: "",
      files: 0,
    },
  );
  assert.deepEqual(await filesOf(pdf), ["forms.md", "scripts/fill.py"]);
});

test("no folder is no skill, and so is a file in its place", async () => {
  await using place = await scratch({ skills: "a file\n" });
  assert.deepEqual(await own(place), { all: [], problems: [] });
  assert.deepEqual(await ownSkills(place.at("nowhere"), place.at("work")), { all: [], problems: [] });
  await symlink("loop", place.at("loop"));
  assert.match(whyOf(await ownSkills(place.at("loop"), place.at("work"))), /loop: it cannot be read/);
});

test("a skill that cannot be one is said, with the reason", () => {
  const table: readonly (readonly [text: string, folder: string, why: RegExp])[] = [
    ["# no front matter\n", "x", /no description/],
    ["---\nname: x\n---\nbody\n", "x", /no description/],
    ["---\nname: x\ndescription: y\n---\n \n", "x", /has no text/],
    ["---\nname: x\ndescription: y\n", "x", /no end/],
    ["---\nname: ../up\ndescription: y\n---\nbody\n", "a b", /its name/],
    [`${skill("x")}${"x".repeat(300_000)}`, "x", /larger than 256 KiB/],
  ];
  for (const [text, folder, why] of table) assert.match(JSON.stringify(readSkill(text, folder)), why);
});

test("a name that cannot be typed is that of its folder", () => {
  for (const name of [
    "PDF Processing",
    "高德地图",
    "../up",
    "",
    "x".repeat(65),
    "a\\u202eb",
    '"a\\u001b[31m"',
  ])
    assert.equal(
      (readSkill(`---\nname: ${name}\ndescription: y\n---\nbody\n`, "amap") as Skill).name,
      "amap",
      name,
    );
  assert.equal((readSkill(skill("other.name_2"), "amap") as Skill).name, "other.name_2", "the twin");
});

const usersOf = (more: string): readonly boolean[] => {
  const { offered, typed } = readSkill(skill("x", more), "x") as Skill;
  return [offered, typed];
};

test("who may use it is what it says", () => {
  assert.deepEqual(usersOf(""), [true, true]);
  assert.deepEqual(usersOf("disable-model-invocation: true\n"), [false, true]);
  assert.deepEqual(usersOf("user-invocable: false\n"), [true, false]);
});

test("links of the user's to a skill are followed, links in it are not", async () => {
  await using place = await scratch({
    "dotfiles/pdf/SKILL.md": skill("pdf"),
    "dotfiles/pdf/run.sh": "echo\n",
    "dotfiles/stow/SKILL.md": skill("stow"),
    "secret/id": "PRIVATE\n",
    "skills/own/SKILL.md": skill("own"),
  });
  await symlink(place.at("dotfiles/pdf"), place.at("skills/pdf"));
  await mkdir(place.at("skills/stow"));
  await symlink(place.at("dotfiles/stow/SKILL.md"), place.at("skills/stow/SKILL.md"));
  await symlink(place.at("secret/id"), place.at("skills/own/id"));
  await symlink(place.at("secret"), place.at("skills/own/folder"));
  await mkdir(place.at("skills/bad"));
  await symlink(place.at("secret/id"), place.at("skills/bad/SKILL.md"));
  const found = await own(place);
  assert.deepEqual(namesOf(found), ["own", "pdf", "stow"]);
  assert.deepEqual(await filesOf(found.all[1]), ["run.sh"]);
  assert.equal(whyOf(found), "bad/SKILL.md: it is a link to a file with another name");
  const { files, left } = (await found.all[0]?.files()) ?? { files: [], left: [] };
  assert.deepEqual([files, left], [[], ["folder", "id"]]);
});

test("a file that becomes a link behind its name is not followed", async () => {
  await using place = await scratch({
    "skills/x/SKILL.md": skill("x"),
    "skills/x/a/b": "b\n",
    "secret/b": "PRIVATE\n",
  });
  const { all } = await own(place);
  const { files } = (await all[0]?.files()) ?? { files: [] };
  assert.equal(Buffer.from((await files[0]?.bytes()) ?? []).toString(), "b\n", "the twin");
  const { rename } = await import("node:fs/promises");
  await rename(place.at("skills/x/a"), place.at("aside"));
  await symlink(place.at("secret"), place.at("skills/x/a"));
  await assert.rejects(files[0]?.bytes() ?? Promise.resolve(), /a link/);
});

test("what lies in the workspace is nobody's word, wherever links lead from", async () => {
  await using place = await scratch({ "work/mine/SKILL.md": skill("mine"), "skills/x/SKILL.md": skill("x") });
  await symlink(place.at("work/mine"), place.at("skills/mine"));
  const found = await own(place);
  assert.deepEqual(namesOf(found), ["x"]);
  assert.match(whyOf(found), /mine\/SKILL.md: it lies in the workspace/);
});

test("what is no text, no file or too much is left out, and said", async () => {
  await using place = await scratch({ "skills/x/SKILL.md": skill("x") });
  await mkdir(place.at("skills/bytes"));
  await writeFile(place.at("skills/bytes/SKILL.md"), Buffer.from([0x2d, 0xff, 0]));
  await mkdir(place.at("skills/dir/SKILL.md"), { recursive: true });
  for (let each = 0; each < 230; each += 1) await writeFile(place.at(`skills/x/f${each}`), "");
  await mkdir(place.at("skills/x/1/2/3/4/5/6"), { recursive: true });
  const found = await own(place);
  assert.deepEqual(namesOf(found), ["x"]);
  assert.match(whyOf(found), /bytes\/SKILL.md: it is not text\ndir\/SKILL.md: it cannot be read/);
  const { files, left } = (await found.all[0]?.files()) ?? { files: [], left: [] };
  assert.ok(files.length <= 200 && files.length + left.length >= 230, `${files.length} ${left.length}`);
});

test("of a project only the layouts' own folders hold skills, each with its trusted text", async () => {
  const files = [
    { path: ".claude/skills/b/SKILL.md", text: skill("b") },
    { path: ".claude/skills/b/deep/ref.md", text: "trusted\n" },
    { path: ".claude/skills/notes.md", text: skill("notes") },
    { path: ".harness/skills/a/SKILL.md", text: skill("a") },
    { path: ".harness/skills/broken/SKILL.md", text: "no front matter\n" },
    { path: "elsewhere/c/SKILL.md", text: skill("c") },
  ];
  const folders = [".harness/skills", ".agents/skills", ".claude/skills"];
  const found = projectSkills(files, folders, ({ text }) => Promise.resolve(Buffer.from(text)));
  assert.deepEqual(
    found.all.map(({ name, origin, place }) => [name, origin, place]),
    [
      ["a", "project", ".harness/skills/a/SKILL.md"],
      ["b", "project", ".claude/skills/b/SKILL.md"],
    ],
  );
  assert.match(whyOf(found), /broken\/SKILL.md: .*no description/);
  const { files: own } = (await found.all[1]?.files()) ?? { files: [] };
  assert.deepEqual(
    own.map(({ path }) => path),
    ["deep/ref.md"],
  );
  assert.equal(Buffer.from((await own[0]?.bytes()) ?? []).toString(), "trusted\n");
});

test("of one name the first counts; a copy says nothing, anything else is said", () => {
  const [one, copy, other] = ["a", "a", "b"].map((body, at) => ({
    name: at === 2 ? "X" : "x",
    place: `p${at}`,
    body,
  }));
  assert.ok(one && copy && other);
  const of = (...all: (typeof one)[]) =>
    firstOfEachName(
      all.map((each) => ({ all: [each], problems: [] })),
      (a, b) => a.body === b.body,
    );
  assert.deepEqual(of(one, copy), { all: [one], problems: [] });
  assert.deepEqual(of(one, other), {
    all: [one],
    problems: [{ file: "p2", why: "x already exists: p0 is used" }],
  });
});
