import assert from "node:assert/strict";
import test, { after, describe } from "node:test";
import { runProgram } from "../fixtures/cli.ts";
import { scratch } from "../fixtures/scratch.ts";
import { pages, shownOn, textOf } from "../house/docs-lines.ts";

const place = await scratch({ "w/x": "", "home/x": "" });
after(() => place[Symbol.asyncDispose]());

/** A verdict as a page shows it: `# ask (10)`, optionally with more words after a comma. */
const SAYS = /# (allow|ask|deny) \((\d+)\)(,.*)?$/;

const judged = pages()
  .flatMap((page) => shownOn(page, textOf(page)))
  .flatMap(({ page, line, words }) => {
    const [, verdict = "", code = ""] = SAYS.exec(line) ?? [];
    return verdict === "" ? [] : [{ page, words, verdict, code: Number(code) }];
  });

describe("verdicts shown in the documentation", { concurrency: 3 }, () => {
  for (const { page, words, verdict, code } of judged)
    test(`${page}: ${words.join(" ")} is ${verdict}`, async () => {
      const ended = await runProgram("bin/harness", words, {
        home: place.at("home"),
        cwd: place.at("w"),
        env: { XDG_CACHE_HOME: place.path, XDG_CONFIG_HOME: place.path },
      });
      assert.equal(ended.code, code, ended.stderr);
      assert.match(ended.stdout, new RegExp(`^${verdict}  `));
    });

  test("there are many of them", () => assert.ok(judged.length >= 12, String(judged.length)));
});
