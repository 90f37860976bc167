// slow: it compares whole indexes after random changes; narrow.test.ts has each kind once
import assert from "node:assert/strict";
import { chmod, rename, rm, symlink, truncate, writeFile } from "node:fs/promises";
import test from "node:test";
import type { SearchMemory } from "../fakes/search-store.ts";
import { gnu as skip } from "../fixtures/index.ts";
import { fc } from "../fixtures/property.ts";
import { type Scratch, scratch } from "../fixtures/scratch.ts";
import { assertLikeFresh, FILES, later, updated } from "./in-part.ts";

// own process: it starts many programs, and each start costs by the memory of the process

const KINDS = `write write write remove folder move link linked chmod rules own unrule secret huge tools nameless`;
interface Step {
  readonly kind: string;
  readonly one: number;
  readonly other: number;
}

const STEP: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom(...KINDS.split(" ")),
  one: fc.nat(11),
  other: fc.nat(11),
});
const ROUNDS = fc.array(fc.array(STEP, { minLength: 1, maxLength: 4 }), { minLength: 2, maxLength: 4 });

const PLACES = ["", "p/", "p/q/", "p/q/r/", "s/", "s/-t/", "p/u v/"];
const RULES = ["*.md\n", "q/\n", "!f1.ts\nf*.ts\n", "/s\n", "r\n", "# nothing\n"];

const folderAt = (number: number): string => PLACES[number % PLACES.length] ?? "";
const fileAt = (number: number): string =>
  `${folderAt(number)}f${number % 4}.${number % 3 === 0 ? "md" : "ts"}`;

async function done(
  place: Scratch,
  step: typeof STEP extends fc.Arbitrary<infer S> ? S : never,
  round: number,
) {
  const { kind, one, other } = step;
  const at = (name: string): string => place.at("work", name);
  // Another length each time.
  const text = `export const v = 1;\n${"// more\n".repeat(round)}`;
  const folder = folderAt(one);
  const write = (name: string, content = text) => place.write(`work/${name}`, content);
  const STEPS: Readonly<Record<string, () => Promise<unknown>>> = {
    write: () => write(fileAt(one)),
    remove: () => rm(at(fileAt(one)), { recursive: true }),
    folder: () => (folder === "" ? Promise.resolve() : rm(at(folder), { recursive: true })),
    move: () =>
      rename(at(folder === "" ? fileAt(one) : folder.slice(0, -1)), at(`${folderAt(other)}moved${other}`)),
    link: () => rm(at(fileAt(one)), { recursive: true }).then(() => symlink("../keep.ts", at(fileAt(one)))),
    linked: async () => {
      if (folder === "") return;
      await rename(at(folder.slice(0, -1)), place.at(`outside${round}`));
      await symlink(place.at(`outside${round}`), at(folder.slice(0, -1)));
    },
    chmod: () => chmod(at(fileAt(one)), other % 2 === 0 ? 0o600 : 0o755),
    rules: () => write(`${folder}.gitignore`, `${RULES[other % RULES.length] ?? ""}${"#\n".repeat(round)}`),
    own: () => write(".harnessignore", `${RULES[other % RULES.length] ?? ""}${"#\n".repeat(round)}`),
    unrule: () => rm(at(other % 2 === 0 ? ".harnessignore" : `${folder}.gitignore`)),
    secret: () => write(`${folder}x.env`),
    huge: () => write(fileAt(one)).then(() => truncate(at(fileAt(one)), (1 << 20) + round)),
    tools: () => write(`${folder}${other % 2 === 0 ? "node_modules" : ".vscode"}/f.ts`),
    nameless: () => writeFile(Buffer.from(`${at(`bad${other}`)}\xff.ts`, "latin1"), text),
  };
  // Where nothing stands in the way, or nothing stands at all.
  await STEPS[kind]?.().catch((thrown: NodeJS.ErrnoException) => {
    if (typeof thrown.code !== "string" || !thrown.code.startsWith("E")) throw thrown;
  });
}

test("after any changes between updates the index equals a newly built one", { skip }, async (t) => {
  later(t);
  const ways = { part: 0, whole: 0 };
  await fc.assert(
    fc.asyncProperty(ROUNDS, async (rounds) => {
      await using place = await scratch({
        ...FILES,
        "work/keep.ts": "export const keep = 1;\n",
        "work/p/q/f1.ts": "export const f = 1;\n",
        "work/s/f2.ts": "export const f = 2;\n",
      });
      const memory: SearchMemory = new Map();
      await updated(place, { memory });
      let count = 0;
      for (const steps of rounds) {
        for (const step of steps) await done(place, step, (count += 1));
        const told = await updated(place, { memory });
        ways[told.listed.includes("./**") ? "whole" : "part"] += 1;
        await assertLikeFresh(place, memory, told);
      }
    }),
    { numRuns: 15 },
  );
  assert.ok(ways.part > 8 && ways.whole > 8, JSON.stringify(ways));
});
