import assert from "node:assert/strict";
import { cp } from "node:fs/promises";
import path from "node:path";
import test, { after, describe } from "node:test";
import { skip } from "../fixtures/engine.ts";
import { giveAway } from "../fixtures/give-away.ts";
import { pages, shownOn, textOf } from "../house/docs-lines.ts";
import { household } from "./box-command.ts";
import { ROOT } from "./package.ts";
import { harness } from "./run-command.ts";

/** The command lines of the documentation, typed as they stand, over a repository that has what they name. */

/** Why a line is not typed here: each takes one line at least, or it goes. */
const NOT_HERE: readonly (readonly [line: RegExp, why: string])[] = [
  [/^(?:$|chat$|--mode |--plain$|sandbox shell|init\b)/, "a person at a terminal"],
  [/\b(?:ID|HASH|NAME|WORDS|FILE|STATE)\b|\$|\b1ng\w+|…/, "a placeholder stands in it"],
  [
    /^(?:sandbox exec --allow-domain|run --allow-domain npm)/,
    "reaches a host: a suite of its own grants hosts that are here",
  ],
  [/^index --watch/, "has no end: a suite of its own ends it"],
  [/^vet\b/, "has suites of its own, over a zoo of repositories and archives"],
  [/^eval\b/, "forty runs each, or a model"],
  [/^batch\b/, "has a suite of its own, over several repositories"],
  [
    /^(?:env build|model probe|mcp (?:test|logs|add|remove))\b/,
    "needs a registry, a model's server or a server of MCP, or has no end",
  ],
  [/^notes (?:show|edit|remove) /, "a note of that number"],
  [
    /^(?:replay|report|diff|sessions(?: show)?) --bundle |^policy (?:test|propose)\b|--env |^undo --redo/,
    "a file or a state that another line makes",
  ],
];

const whyNot = (line: string): string | undefined => NOT_HERE.find(([form]) => form.test(line))?.[1];

/** Tasks and questions differ by their words alone: of each set of flags one is typed. */
const formOf = (words: readonly string[]): string =>
  (/^(?:run|search)$/.test(words[0] ?? "") ? words.slice(0, -1) : words).join(" ");

/** What a line is about has to be there before: the bug that is mended, a layer that waits, candidates. */
const LATER = [
  /scripted-fix/,
  /^run\b(?!.* --(?:attempts|isolation))/,
  /^run --isolation/,
  /^apply --dry-run/,
  /^apply$/,
  /^run\b/,
  /^(?:replay|undo --cwd)\b/,
];
const rankOf = (line: string): number => LATER.findIndex((form) => form.test(line));

const lines = [
  ...new Map(
    pages()
      .filter((page) => page !== "CHANGELOG.md")
      .flatMap((page) => shownOn(page, textOf(page)))
      .filter(({ whole }) => whole)
      .map(({ page, words }) => [words.join(" "), { page, words }] as const),
  ),
];
const typed = [
  ...new Map(
    lines
      .filter(([line]) => whyNot(line) === undefined)
      .map((each) => [formOf(each[1].words), each] as const),
  ).values(),
].toSorted(([one], [other]) => rankOf(one) - rankOf(other));

const CONFIG = ".config/harness/config.json";
const SETTINGS = (replies: string): object => ({
  provider: "scripted",
  chat_model: replies,
  search: { store: "embedded" },
});

const place = await household();
after(() => place[Symbol.asyncDispose]());
if (skip === false) {
  for (const folder of ["work", "broken-sum"])
    await cp(path.join(ROOT, "examples/broken-sum"), place.at(folder), { recursive: true });
  await cp(path.join(ROOT, "examples/scripted-fix.jsonl"), place.at("work/examples/scripted-fix.jsonl"));
  await place.write(
    "work/package.json",
    '{"type": "module", "scripts": {"test": "node --test", "lint": "true"}}',
  );
  await place.write("work/Makefile", "test:\n\tnpm test\n");
  await place.write("work/review.schema.json", '{"type": "string"}');
  await place.write("work/customers/list.csv", "a\n");
  await place.write("work/.env", "A=1\n");
  for (const folder of ["work", "broken-sum"]) await giveAway(place.at(folder));
  // Looks and makes one file, then answers whatever is asked.
  const replies = await place.write(
    "replies.jsonl",
    '{"repeat":"forever","steps":[{"reply":[{"call":"bash","args":{"command":"ls; echo x >> made.txt"}}]},{"reply":["It is done."]}]}\n',
  );
  await place.write(CONFIG, JSON.stringify(SETTINGS(replies)));
}
/** What a user has, too: a price, a key of a server that is not there, a token. */
const ENV = {
  HARNESS_BASE_URL: "http://127.0.0.1:9",
  HARNESS_PRICES: '[{"model":"claude-","input":3,"output":15}]',
  ANTHROPIC_API_KEY: "k",
  API_TOKEN: "of-nobody-7788",
};
/** Where a page copies an example to. */
const asHere = (word: string): string => (word === "/tmp/broken-sum" ? place.at("broken-sum") : word);

/** What is wrong with how it was typed, or with us; that a task failed or a verdict is no is neither. */
const FAULT = /internal error|\n {4}at |unexpected argument|Nonexistent flag|is no setting/i;

describe("lines of the documentation", { skip, concurrency: 2 }, () => {
  test("each line works as typed, in a suitable session", async () => {
    const ran = await harness(place, ["run", "mend the bug", "--no-verify"]);
    assert.equal(ran.code, 0, ran.stderr);
    const wrong: string[] = [];
    for (const [line, { page, words }] of typed) {
      const input = words.includes("--stdin") || words.includes("-") ? "{}\n" : "";
      const { code, stderr, stdout } = await harness(place, words.map(asHere), { input, env: ENV });
      const isMended = !line.includes("scripted-fix") || code === 0;
      if (code === null || code === 2 || !isMended || FAULT.test(stderr + stdout))
        wrong.push(`${page}: harness ${line}: ${code} ${stderr}`);
      // What one sets is not for the next.
      if (words[0] === "config")
        await place.write(CONFIG, JSON.stringify(SETTINGS(place.at("replies.jsonl"))));
    }
    assert.deepEqual(wrong, []);
  });

  test("no more lines than necessary are left out", () => {
    assert.ok(typed.length >= 80, String(typed.length));
    for (const [form, why] of NOT_HERE)
      assert.ok(
        lines.some(([line]) => whyNot(line) === why && form.test(line)),
        `nothing is left out as: ${why}`,
      );
  });
});
