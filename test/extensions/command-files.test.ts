import assert from "node:assert/strict";
import { mkdir, symlink } from "node:fs/promises";
import test from "node:test";
import {
  type AddedCommand,
  commandIn,
  expanded,
  ownCommands,
  projectCommands,
  readCommand,
} from "../../src/extensions/command-files.ts";
import { scratch } from "../fixtures/scratch.ts";

const command = (text: string, name = "x"): AddedCommand => ({
  name,
  description: "",
  hint: "",
  origin: "user",
  place: "p",
  text,
});

const said = (text: string, argument: string): string => {
  const filled = expanded(command(text), argument);
  assert.ok("text" in filled, JSON.stringify(filled).slice(0, 200));
  return filled.text;
};

test("arguments replace their placeholders in the text, or are appended", () => {
  const table: readonly (readonly [text: string, argument: string, said: string])[] = [
    ["Fix $ARGUMENTS now", "issue 12", "Fix issue 12 now"],
    ["Fix $1 in $2", "a 'b c'", "Fix a in b c"],
    ["$1|$2|$3", 'x "y z"w', "x|y zw|"],
    ["Look at $1 and $1", "a", "Look at a and a"],
    ["No place", "more words", "No place\n\nArguments: more words"],
    ["No place", "", "No place"],
    ["Costs $10 or $ARGUMENTS_X or $0", "", "Costs $10 or $ARGUMENTS_X or $0"],
    [String.raw`Literal \$1 and \$ARGUMENTS, real $1`, "a", "Literal $1 and $ARGUMENTS, real a"],
    [String.raw`Costs \$10 and \$ARGUMENTS_X`, "", String.raw`Costs \$10 and \$ARGUMENTS_X`],
    ["$1 then $ARGUMENTS", "$2 $ARGUMENTS", "$2 then $2 $ARGUMENTS"],
    ["$1", "it's", "it's"],
    ["$1 $2", "$& $`", "$& $`"],
  ];
  for (const [text, argument, expected] of table) assert.equal(said(text, argument), expected, text);
});

test("shell commands and file references of the Claude layout are left as they are, with a note that nothing was run", () => {
  const text = "Status: !`git status`\nSee @src/a.ts";
  assert.match(said(text, ""), /^Status: !`git status`\nSee @src\/a\.ts\n\n\[harness\] Nothing was run/);
  assert.equal(said("Wow!`x`y", ""), "Wow!`x`y", "the twin");
});

test("no hidden characters of a text reach the request unseen", () => {
  assert.equal(said("a\u202Eb\u{E0041}c\u001B[31m\r\n$1", "\u202Ex"), "a<U+202E>b<U+E0041>c␛[31m\n\u202Ex");
});

test("a text that becomes too long with its arguments is refused", () => {
  assert.match(
    JSON.stringify(expanded(command("$ARGUMENTS ".repeat(1000)), "x".repeat(10_000))),
    /longer than 512 KiB/,
  );
});

test("names come from files and folders, in either spelling and any case", () => {
  const all = [command("a", "ship"), command("b", "git:commit"), command("c", "v1.2_x")];
  const of = (line: string): unknown => {
    const found = commandIn(line, all);
    return found === undefined ? undefined : [found.command.name, found.argument];
  };
  assert.deepEqual(of("/ship"), ["ship", ""]);
  assert.deepEqual(of("  /SHIP  it now \n"), ["ship", "it now"]);
  assert.deepEqual(of("/git:commit -m 'x'"), ["git:commit", "-m 'x'"]);
  assert.deepEqual(of("/git/commit\nall\nof it"), ["git:commit", "all\nof it"]);
  assert.deepEqual(of("/v1.2_x"), ["v1.2_x", ""]);
  for (const line of ["/shi", "/ships", "ship", "/git", "/git:commit:x", "/etc/hosts", "/", "// ship"])
    assert.equal(of(line), undefined, line);
});

test("the description in a file is read, and permissions in it are ignored", () => {
  const read = readCommand(
    "---\ndescription: Commits.\nargument-hint: [message]\nallowed-tools: Bash(*)\nmodel: other\n---\nCommit.\n",
    "git/commit.md",
  );
  assert.deepEqual(read, { name: "git:commit", description: "Commits.", hint: "[message]", text: "Commit." });
  assert.deepEqual(readCommand("# Title\n\ntext\n", "a.md"), {
    name: "a",
    description: "Title",
    hint: "",
    text: "# Title\n\ntext",
  });
  assert.equal(readCommand("echo\n", "a.sh"), undefined);
  for (const [text, file, why] of [
    ["x", "a b.md", /its name/],
    ["x", "../a.md", /its name/],
    ["x", "a/b/c/d/e.md", /its name/],
    ["x", "sh\u0456p.md", /its name/],
    ["---\ndescription: x\n---\n", "a.md", /has no text/],
    ["---\ndescription: x\n", "a.md", /no end/],
    ["x".repeat(200_000), "a.md", /larger than 128 KiB/],
  ] as const)
    assert.match(JSON.stringify(readCommand(text, file)), why, file);
});

test("the user's folders are read through links, but only Markdown files", async () => {
  await using place = await scratch({
    "commands/ship.md": "Ship $1.\n",
    "commands/git/commit.md": "Commit.\n",
    "commands/git/hook.sh": "echo\n",
    "dotfiles/linked.md": "Linked.\n",
    "secret/id": "PRIVATE\n",
    "work/mine.md": "Mine.\n",
  });
  await symlink(place.at("dotfiles/linked.md"), place.at("commands/linked.md"));
  await symlink(place.at("secret/id"), place.at("commands/key.md"));
  await symlink(place.at("work/mine.md"), place.at("commands/mine.md"));
  await symlink(place.at("commands"), place.at("commands/loop"));
  await mkdir(place.at("commands/dir.md"));
  const { all, problems } = await ownCommands(place.at("commands"), place.at("work"));
  assert.deepEqual(all.map(({ name }) => name).toSorted(), ["git:commit", "linked", "ship"]);
  assert.deepEqual(
    problems.map(({ file, why }) => `${file.split("/").at(-1)}: ${why}`),
    [
      "dir.md: it cannot be read: it is not a file",
      "key.md: it is a link to a file that is not Markdown",
      "mine.md: it lies in the workspace, where a run may have written it",
    ],
  );
  assert.deepEqual(await ownCommands(place.at("nowhere"), place.at("work")), { all: [], problems: [] });
});

test("every layout of a project is read, in order", () => {
  const files = [
    { path: ".agents/commands/x.md", text: "second\n" },
    { path: ".claude/commands/git/y.md", text: "y\n" },
    { path: ".harness/commands/x.md", text: "first\n" },
    { path: ".harness/commands/x.sh", text: "echo\n" },
    { path: ".claude/commandsx/z.md", text: "z\n" },
  ];
  const { all, problems } = projectCommands(files, [
    ".harness/commands",
    ".agents/commands",
    ".claude/commands",
  ]);
  assert.deepEqual(
    all.map(({ name, text, origin }) => [name, text, origin]),
    [
      ["x", "first", "project"],
      ["x", "second", "project"],
      ["git:y", "y", "project"],
    ],
  );
  assert.deepEqual(problems, []);
});
