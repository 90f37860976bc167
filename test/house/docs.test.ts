import assert from "node:assert/strict";
import { existsSync, globSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { type Command, Parser } from "@oclif/core";
import { parse } from "yaml";
import { routed } from "../../src/cli/command.ts";
import { readLayer } from "../../src/config/setting-rules.ts";
import { DEFAULTS, SETTING_KEYS } from "../../src/config/settings-schema.ts";
import { LOOP_RULES } from "../../src/kubernetes/cluster-rights.ts";
import { commandClasses } from "../fixtures/command-classes.ts";
import { anchorsOf, linksOf, pages, shownOn, type ShownCommand, textOf } from "./docs-lines.ts";
import { repository } from "./plant.ts";

const COMMANDS: ReadonlyMap<string, Command.Class> = new Map(
  [...(await commandClasses())].map(([id, command]) => [id.replaceAll(":", " "), command]),
);

const TOPICS = new Set(
  [...COMMANDS.keys()].filter((name) => name.includes(" ")).map((name) => name.split(" ")[0]),
);

interface Named {
  readonly name: string;
  readonly rest: readonly string[];
}

function named(words: readonly string[]): Named | undefined {
  const [first = "", second = ""] = routed(words);
  if (COMMANDS.has(`${first} ${second}`)) return { name: `${first} ${second}`, rest: routed(words).slice(2) };
  return COMMANDS.has(first) ? { name: first, rest: routed(words).slice(1) } : undefined;
}

/** What is wrong with a line that is shown; undefined where nothing is. */
async function wrongWith({ words, whole }: ShownCommand): Promise<string | undefined> {
  if (words.length === 1 && ["--version", "--help"].includes(words[0] ?? "")) return undefined;
  const found = named(words);
  if (found === undefined) {
    const [first = ""] = words;
    return !whole && (TOPICS.has(first) || first === "…")
      ? undefined
      : `there is no command ${words.join(" ")}`;
  }
  const command = COMMANDS.get(found.name);
  if (command === undefined) return "no command";
  const end = found.rest.indexOf("--");
  const own = found.rest.slice(0, end === -1 ? undefined : end);
  if (own.includes("--help")) return undefined;
  return (
    unknownFlag(command, own) ?? badSetting(found.name, own) ?? (whole ? unread(command, own) : undefined)
  );
}

function unknownFlag(command: Command.Class, words: readonly string[]): string | undefined {
  const flags = { ...command.baseFlags, ...command.flags };
  const names = words.flatMap((word) => /^--([\w-]+)/.exec(word)?.[1] ?? []);
  const unknown = names.find((name) => flags[name] === undefined);
  return unknown === undefined ? undefined : `there is no --${unknown}`;
}

function badSetting(name: string, [key = ""]: readonly string[]): string | undefined {
  if (!/^config (set|get)$/.test(name) || /^[A-Z…]*$/.test(key)) return undefined;
  const [first = ""] = key.split(".");
  return SETTING_KEYS.some((each) => each === first) ? undefined : `there is no setting ${first}`;
}

/** As oclif reads it: required arguments, values from lists, flags that exclude each other. */
async function unread(command: Command.Class, words: readonly string[]): Promise<string | undefined> {
  const { strict } = command;
  const args = Object.fromEntries(
    Object.entries(command.args).map(([name, arg]) => [name, { ...arg, ignoreStdin: true }]),
  );
  const flags = { ...command.baseFlags, ...command.flags };
  try {
    await Parser.parse([...words], { args, flags, strict, context: undefined } as never);
    return undefined;
  } catch (thrown) {
    return (thrown as Error).message;
  }
}

const shown = pages()
  .filter((page) => page !== "CHANGELOG.md")
  .flatMap((page) => shownOn(page, textOf(page)));

test("every command line in the documentation uses existing commands, flags and settings", async () => {
  const wrong = await Promise.all(
    shown.map(async (each) => [`${each.page}: ${each.line}`, await wrongWith(each)] as const),
  );
  assert.deepEqual(
    wrong.filter(([, what]) => what !== undefined),
    [],
  );
  assert.ok(shown.length > 300, `only ${shown.length} lines were found`);
  assert.ok(shown.filter(({ whole }) => whole).length > 150);
});

for (const [line, what] of [
  ["harness runn x", /no command runn/],
  ["harness run --no-such x", /no --no-such/],
  ["HARNESS_MODE=read-only ../bin/harness run --mode readonly x", /--mode/],
  ["harness approve", /required/],
  ["harness approve ID --once --deny", /deny/],
  ["ls && harness config set colour red", /no setting colour/],
  ["cd x; harness policy path .env --operation read # why", /no --operation/],
  ["harness undo \\\n  --too 3 > out", /no --too/],
] as const)
  test(`a page that shows ${JSON.stringify(line)} is an error`, async () => {
    const [each, ...others] = shownOn("docs/x.md", `# X\n\n\`\`\`sh\n${line}\n\`\`\`\n`);
    assert.ok(each !== undefined && others.length === 0);
    assert.match((await wrongWith(each)) ?? "", what);
  });

for (const line of [
  "harness sandbox exec --mode read-only -- bash -c 'ls --colour | wc -l' | sort",
  'FOO=1 harness run --allow-domain npm "what is --this?" > ../out',
  "harness --mode read-only",
  "harness diff [ID] [--stat] [--from STEP] [--json]     # what changed",
])
  test(`a page that shows ${JSON.stringify(line)} is accepted`, async () => {
    const [each, ...others] = shownOn("docs/x.md", `\`\`\`sh\n${line}\n\`\`\`\n`);
    assert.ok(each !== undefined && others.length === 0);
    assert.equal(await wrongWith(each), undefined);
  });

/** Links of a page that lead nowhere. */
function dead(page: string, text: string): readonly string[] {
  return linksOf(text).filter((target) => {
    const [file = "", anchor] = target.split("#");
    const at = file === "" ? page : path.join(path.dirname(page), file);
    if (file !== "" && !existsSync(path.join(repository, at))) return true;
    return anchor !== undefined && !anchorsOf(file === "" ? text : textOf(at)).has(anchor);
  });
}

test("every link in the documentation leads to an existing page and heading", () => {
  assert.deepEqual(
    pages().flatMap((page) => dead(page, textOf(page)).map((target) => `${page}: ${target}`)),
    [],
  );
  assert.deepEqual(
    dead(
      "docs/x.md",
      "# A `b` c!\n[a](#a-b-c) [b](#a) [c](nowhere.md) [d](../README.md#modes) [e](run.md#no)",
    ),
    ["#a", "nowhere.md", "run.md#no"],
  );
});

/** A row of a table; a bar within code or behind a backslash is text. */
const cellsIn = (line: string): number => line.replaceAll(/\\.|`[^`]*`/g, "").split("|").length - 2;

test("each row of a table has as many cells as its header", () => {
  let rows = 0;
  for (const page of pages()) {
    let cells = 0;
    let isCode = false;
    for (const [index, line] of textOf(page).split("\n").entries()) {
      if (line.startsWith("```")) isCode = !isCode;
      if (isCode || !line.startsWith("|")) cells = 0;
      else if (cells === 0) cells = cellsIn(line);
      else assert.equal(cellsIn(line), cells, `${page}:${index + 1}`);
      rows += line.startsWith("|") ? 1 : 0;
    }
  }
  assert.ok(rows > 500, String(rows));
});

test("each YAML and JSON block in the documentation can be parsed", () => {
  const blocks = pages().flatMap((page) =>
    [...textOf(page).matchAll(/^ *```(yaml|json)\n([^]*?)^ *```$/gm)].map(
      ([, language = "", block = ""]) => [page, language, block] as const,
    ),
  );
  for (const [page, language, block] of blocks)
    assert.doesNotThrow(() => (language === "yaml" ? parse(block) : JSON.parse(block)), `${page}: ${block}`);
  assert.ok(blocks.length > 10);
});

test("each page of docs is listed once in their index, which the README links", () => {
  const listed = linksOf(textOf("docs/README.md")).filter((target) => /^[\w-]+\.md$/.test(target));
  const there = globSync("docs/*.md", { cwd: repository }).map((page) => path.basename(page));
  assert.deepEqual(listed.toSorted(), there.filter((page) => page !== "README.md").toSorted());
  assert.ok(linksOf(textOf("README.md")).includes("docs/README.md"));
});

/** Reads numbers, lists and objects as JSON, and everything else as text. */
function valueOf(written: string): unknown {
  try {
    return JSON.parse(written);
  } catch {
    return written;
  }
}

/** The defaults in the rows of the page of settings, read like values of a file. */
const shownDefaults = (text: string): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    [...text.matchAll(/^\| `(\w+)` +\|.*\| (?:`([^`]+)`|–) +\|$/gm)].map(([, key = "", written]) => [
      key,
      written === undefined ? null : valueOf(written),
    ]),
  );

test("docs/settings.md has each setting with its default", () => {
  const [before = "", behind = ""] = textOf("docs/settings.md").split("## Boxes in a cluster\n");
  const [shown, inCluster] = [shownDefaults(before), shownDefaults(behind)];
  const read = readLayer({ ...shown, kubernetes: inCluster }, (keys) => keys.join("."));
  assert.deepEqual(read, DEFAULTS);
  assert.deepEqual(Object.keys(inCluster).toSorted(), Object.keys(DEFAULTS.kubernetes).toSorted());
});

test("docs/kubernetes.md shows the role that a box needs", () => {
  const [, block = ""] = /```yaml\n([^`]*kind: Role\n[^`]*)```/.exec(textOf("docs/kubernetes.md")) ?? [];
  assert.deepEqual((parse(block) as { readonly rules: unknown }).rules, LOOP_RULES);
});

test("a status that a page quotes is one that a run can print", () => {
  const quoted = pages().flatMap((page) =>
    [...textOf(page).matchAll(/`([a-z][^`]*) \(exit \d\)`/g)].map(([, status = ""]) => ({ page, status })),
  );
  const printed = textOf("src/render/tty/run-summary.ts");
  assert.ok(quoted.length > 3);
  assert.deepEqual(
    quoted.filter(({ status }) => !printed.includes(`"${status}"`)),
    [],
  );
});
