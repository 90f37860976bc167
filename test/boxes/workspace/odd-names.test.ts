import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { appendFile, lstat, mkdir, mkdtemp, readFile, rm, truncate, writeFile } from "node:fs/promises";
import test from "node:test";
import { SharedCopies } from "../../../src/boxes/workspace/shared-copies.ts";
import { findAllPlanted, findPlanted, quarantine } from "../../../src/boxes/workspace/quarantine.ts";
import { findProtected } from "../../../src/boxes/workspace/protection.ts";
import { ELSEWHERE, noElsewhere } from "../../fixtures/elsewhere.ts";
import { scratch } from "../../fixtures/scratch.ts";

const odd = (text: string): Buffer => Buffer.from(text, "latin1");

test("planted items below a name that is not UTF-8 are moved out like others and can be restored", async () => {
  await using home = await scratch({ "w/README.md": "" });
  const root = home.at("w");
  const protection = await findProtected(root);
  for (const folder of [`${root}/bad\xff/n/.git`, `${root}/.aider\xfe`, `${root}/plain/.git`]) {
    await mkdir(odd(folder), { recursive: true });
    await writeFile(odd(`${folder}/f\xff`), "kept\n");
  }
  assert.equal((await findPlanted(root, protection)).length, 1);
  const { planted } = await findAllPlanted(root, protection);
  const moved = await quarantine(root, planted, home.at("out"));
  assert.equal(moved.length, 3);
  assert.deepEqual((await findAllPlanted(root, protection)).planted, []);
  for (const { takeBack } of moved) execFileSync("bash", ["-c", takeBack]);
  assert.ok((await lstat(odd(`${root}/bad\xff/n/.git/f\xff`))).isFile());
  assert.ok((await lstat(odd(`${root}/.aider\xfe/f\xff`))).isFile());
});

test("the restore command for an odd name contains no control characters and works", async () => {
  await using home = await scratch({ "w/README.md": "" });
  const names = [".aider\u001B]2;x\u0007", ".aider'\\\n\u202E\u009B", ".aider\u{E0041} $(x)"];
  for (const name of names) await writeFile(home.at("w", name), "kept\n");
  const planted = names.map((name) => home.at("w", name));
  for (const { from, takeBack } of await quarantine(home.at("w"), planted, home.at("out"))) {
    assert.doesNotMatch(takeBack, /\p{C}/u);
    execFileSync("bash", ["-c", takeBack]);
    assert.ok((await lstat(from)).isFile());
  }
});

const elsewhere = await scratchElsewhere();

test("a move to another file system keeps odd names and sparse files", { skip: noElsewhere }, async () => {
  await using home = await scratch();
  await using other = elsewhere;
  await mkdir(home.at("from"));
  await writeFile(odd(`${home.at("from")}/f\xff`), "kept\n");
  await writeFile(home.at("from", "sparse"), "start");
  await truncate(home.at("from", "sparse"), 3 * 2 ** 24);
  await appendFile(home.at("from", "sparse"), "end");
  await truncate(await home.write("from/hole", ""), 2 ** 31);
  await using copies = new SharedCopies(other?.path ?? "");
  await copies.move(home.at("from"), `${other?.path}/to`);
  assert.ok((await lstat(odd(`${other?.path}/to/f\xff`))).isFile());
  const [sparse, hole] = [`${other?.path}/to/sparse`, await lstat(`${other?.path}/to/hole`)];
  const content = await readFile(sparse);
  assert.deepEqual([content.length, content.subarray(0, 5).toString()], [3 * 2 ** 24 + 3, "start"]);
  assert.equal(content.subarray(-3).toString(), "end");
  assert.ok((await lstat(sparse)).blocks * 512 <= 2 ** 22);
  assert.deepEqual([hole.size, hole.blocks], [2 ** 31, 0]);
  await assert.rejects(lstat(home.at("from")));
});

async function scratchElsewhere(): Promise<(AsyncDisposable & { readonly path: string }) | undefined> {
  if (ELSEWHERE === undefined) return undefined;
  const path = await mkdtemp(`${ELSEWHERE}/harness-test-`);
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}
