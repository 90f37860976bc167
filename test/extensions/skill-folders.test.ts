import assert from "node:assert/strict";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import test from "node:test";
import { parse } from "yaml";
import {
  firstOfEachName,
  type FoundExtensions,
  type FrontMatter,
  ownSkills,
  projectSkills,
  readFrontMatter,
  readSkill,
  type Skill,
} from "../../src/extensions/skill-folders.ts";
import { scratch, type Scratch } from "../fixtures/scratch.ts";

const skill = (name: string, more = ""): string =>
  `---\nname: ${name}\ndescription: About ${name}.\n${more}---\n# ${name}\nDo it.\n`;

const own = (place: Scratch): Promise<FoundExtensions<Skill>> =>
  ownSkills(place.at("skills"), place.at("work"));
const namesOf = ({ all }: FoundExtensions<Skill>): readonly string[] => all.map(({ name }) => name);
const whyOf = ({ problems }: FoundExtensions<Skill>): string =>
  problems.map(({ file, why }) => `${file.split("/").slice(-2).join("/")}: ${why}`).join("\n");
const filesOf = async (one: Skill | undefined): Promise<readonly string[]> =>
  ((await one?.files())?.files ?? []).map(({ path }) => path);

test("a folder with a SKILL.md is a skill with the files next to it", async () => {
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

test("a missing skills folder yields no skills, and so does a file in its place", async () => {
  await using place = await scratch({ skills: "a file\n" });
  assert.deepEqual(await own(place), { all: [], problems: [] });
  assert.deepEqual(await ownSkills(place.at("nowhere"), place.at("work")), { all: [], problems: [] });
  await symlink("loop", place.at("loop"));
  assert.match(whyOf(await ownSkills(place.at("loop"), place.at("work"))), /loop: it cannot be read/);
});

test("an invalid skill is reported with the reason", () => {
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

test("a name that cannot be typed is replaced by the folder's name", () => {
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

test("front matter controls whether the model, the user or both may use a skill", () => {
  assert.deepEqual(usersOf(""), [true, true]);
  assert.deepEqual(usersOf("disable-model-invocation: true\n"), [false, true]);
  assert.deepEqual(usersOf("user-invocable: false\n"), [true, false]);
});

test("the user's links to a skill are followed, links inside it are not", async () => {
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

test("a file that becomes a link later is not followed", async () => {
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

test("skills inside the workspace are refused, wherever links to them are", async () => {
  await using place = await scratch({ "work/mine/SKILL.md": skill("mine"), "skills/x/SKILL.md": skill("x") });
  await symlink(place.at("work/mine"), place.at("skills/mine"));
  const found = await own(place);
  assert.deepEqual(namesOf(found), ["x"]);
  assert.match(whyOf(found), /mine\/SKILL.md: it lies in the workspace/);
});

test("binary, irregular and oversized files are left out and reported", async () => {
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

test("in a project only the layouts' own folders contain skills, each with its trusted text", async () => {
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

test("the first skill of a name is used; a copy is ignored silently, and a different one is reported", () => {
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

const read = (text: string): FrontMatter => {
  const found = readFrontMatter(text);
  assert.ok(typeof found !== "string", JSON.stringify(found));
  return found;
};
const valuesOf = (front: string): Record<string, string> =>
  Object.fromEntries(read(`---\n${front}\n---\nbody\n`).values);

/** In the forms that skills and commands in the wild have; a YAML parser reads each of them the same. */
const VALID: readonly string[] = [
  "name: pdf\ndescription: Fills forms, merges files. Use when a PDF is named.",
  'name: "quoted name"\ndescription: "Says \\"so\\": it\\u2019s done\\tnow"',
  "name: 'it''s'\ndescription: 'a: b # c'",
  "name: release\ndescription: >-\n  Publish a release.\n  Align the tag,\n\n  then write notes.\nmodel: x",
  "name: release\ndescription: >\n  One line\n  goes on\n    - kept\n    - as is\n  and on",
  "description: |\n  First line\n  second line\n\n    indented\nname: literal",
  "description: |-\n  no end\nname: x",
  "description: plain words\n  that go on\n  in further lines\nname: x",
  'description: "quoted words\n  that go on"\nname: x',
  "# a comment\nname: x # another\ndescription: issue#12 is no comment",
  "name: x\n\ndescription: after an empty line\n",
  "description: 日本語の説明。`--model` に渡す\nname: list",
  'name: x\n"description": in quotes',
  "name: x\ndescription:\n  on the next line",
];

test("valid YAML is read as a YAML parser reads it", () => {
  for (const front of VALID) {
    const expected = Object.entries(parse(front) as Record<string, unknown>).map(
      ([key, value]) => [key, String(value).trim()] as const,
    );
    assert.deepEqual(valuesOf(front), Object.fromEntries(expected), front);
  }
});

test("values that people mean as text are text, whatever YAML makes of them", () => {
  const table: readonly (readonly [front: string, key: string, value: string])[] = [
    ["description: Use this: when it fits", "description", "Use this: when it fits"],
    ["argument-hint: [message] [--force]", "argument-hint", "[message] [--force]"],
    ["argument-hint: <file> | all", "argument-hint", "<file> | all"],
    ['description: "pdf" and "docx" files', "description", '"pdf" and "docx" files'],
    ["allowed-tools: Bash(git:*), Read", "allowed-tools", "Bash(git:*), Read"],
    ["allowed-tools:\n- Bash\n- Read", "allowed-tools", "- Bash\n- Read"],
    ["metadata:\n  author: me\n  tags: [a, b]", "metadata", "author: me tags: [a, b]"],
    ["description: *anchor", "description", "*anchor"],
    ["version: 1.10", "version", "1.10"],
    ["disable-model-invocation: true", "disable-model-invocation", "true"],
    ["description:", "description", ""],
  ];
  for (const [front, key, value] of table) assert.equal(valuesOf(front)[key], value, front);
});

test("line ends, a byte order mark and a missing body make no difference", () => {
  assert.equal(
    read("\uFEFF---\r\nname: x\r\ndescription: y\r\n---\r\nbody\r\n").values.get("description"),
    "y",
  );
  assert.equal(read("---\nname: x\n---").body, "");
  assert.equal(read("---\nname: x\n...\nbody").body, "body");
  assert.equal(read("---  \nname: x\n---\t\nbody\n---\nmore").body, "body\n---\nmore");
  const none = read("# No front matter\n---\nname: x\n---\n");
  assert.deepEqual([none.values.size, none.body.startsWith("# No")], [0, true]);
});

test("ambiguous or unterminated front matter is refused", () => {
  const table: readonly (readonly [text: string, why: RegExp])[] = [
    ["---\nname: x\n", /no end/],
    ["---\nname: x\nname: y\n---\n", /has name twice/],
    ["---\nname: x\nwords that go on\n---\n", /line 3 of its front matter/],
    ["---\n? complex\n---\n", /line 2/],
    [`---\nname: ${"x".repeat(20_000)}\n---\n`, /too long/],
    [`---\n${"# c\n".repeat(1000)}---\n`, /too long/],
    [`---\n${"a:\n".repeat(3)}---\n`, /twice/],
  ];
  for (const [text, why] of table)
    assert.match(JSON.stringify(readFrontMatter(text)), why, text.slice(0, 40));
});

test("keys of object properties are ordinary keys, and deep nesting is text", () => {
  assert.equal(valuesOf("__proto__: x\nconstructor: y")["constructor"], "y");
  const deep = Array.from({ length: 300 }, (_, at) => `${" ".repeat(at + 1)}k:`)
    .join("\n")
    .slice(0, 16_000);
  assert.equal(
    typeof readFrontMatter(`---\nname: x\nmetadata:\n${deep.split("\n").slice(0, 150).join("\n")}\n---\n`),
    "object",
  );
  assert.equal(valuesOf(`description: ${"[".repeat(5000)}`)["description"], "[".repeat(5000));
});

test("hostile front matter is read in one pass", () => {
  for (const text of [
    "\\".repeat(15_000),
    `"${"\\u".repeat(7000)}`,
    "' ".repeat(7000),
    " #".repeat(7000),
    `a${" ".repeat(15_000)}b`,
    "| ".repeat(7000),
  ])
    assert.ok(["string", "object"].includes(typeof readFrontMatter(`---\ndescription: ${text}\n---\n`)));
});
