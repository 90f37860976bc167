import assert from "node:assert/strict";
import { chmodSync, existsSync, readFileSync, rmSync } from "node:fs";
import test from "node:test";
import { skip } from "../fixtures/engine.ts";
import type { Scratch } from "../fixtures/scratch.ts";
import { household } from "./box-command.ts";
import { bash, eventsOf, finishedOf, harness, type Said, startModel } from "./run-command.ts";
import { resultsIn } from "./run-requests.ts";

/** With nobody there, unknown commands run in the box unless something speaks against them. */

const FINE: Said = { text: "Everything is done." };
const SECRET = "hunter2hunter2";
const FILES = {
  "bin/mytool": '#!/bin/sh\necho "$@" >> ran\n',
  ".env": `API_TOKEN=${SECRET}\n`,
  "src/a.js": "1;\n",
};

/** Each of these commands in a reply of its own: whether it left `ran`, which is gone before the next. */
async function played(place: Scratch, commands: readonly string[]) {
  const left: boolean[] = [];
  await using model = await startModel((_chat, nth) => {
    if (nth > 0) {
      left.push(existsSync(place.at("work/ran")));
      rmSync(place.at("work/ran"), { force: true });
    }
    return nth < commands.length ? bash(commands[nth] ?? "") : FINE;
  });
  const ran = await harness(place, ["run", "--json", ...model.flags, "do it"]);
  const decided = eventsOf(ran).filter((event) => event.type === "call.decided");
  const asked = model.asked();
  assert.deepEqual([left.length, decided.length], [commands.length, commands.length], ran.stderr);
  return { ran, left, decided, asked, results: resultsIn(asked.at(-1)) };
}

const RUN = [
  'x="touch ran"; eval "$x $(echo)"',
  'CMD=$(cat cmd); $CMD ran || touch "$(echo ran)"',
  "sh bin/mytool x; ls --option-of-tomorrow src",
  "echo touch ran | sh",
  "python3 -c 'import os; os.system(\"touch ran\")'",
  // What it exports the next one would have.
  'export PATH="$PWD/bin:$PATH"; mytool x',
];

test("unknown commands run in the box", { skip }, async (t) => {
  await using place = await household(FILES);
  chmodSync(place.at("work/bin/mytool"), 0o755);
  const { ran, left, decided, results } = await played(place, RUN);
  for (const [nth, command] of RUN.entries())
    await t.test(command, () => {
      const { decision, contained, runs, by } = decided[nth] ?? {};
      assert.deepEqual([decision, contained, runs, by], ["ask", true, true, "contained"]);
      assert.ok(left[nth], results[nth]);
    });
  assert.deepEqual([ran.code, finishedOf(ran).denials], [0, []], ran.stderr);
});

const REFUSED = [
  "cat .env; touch ran",
  'export PATH="$PWD/bin:$PATH"; mytool x .env; touch ran',
  "touch ran; curl -sS -m 2 https://example.com",
  "touch ran; git stash drop",
  "touch ran; mytool https://example.com/x",
  "touch ran; docker ps",
];

test("commands that reach beyond the box are refused", { skip }, async (t) => {
  await using place = await household(FILES);
  const { ran, left, decided, asked, results } = await played(place, REFUSED);
  for (const [nth, command] of REFUSED.entries())
    await t.test(command, () => {
      assert.deepEqual([decided[nth]?.runs, left[nth]], [false, false]);
      assert.match(results[nth] ?? "", /nobody is there to be asked.*It was not run/s);
    });
  assert.deepEqual([ran.code, finishedOf(ran).denials.length], [4, REFUSED.length], ran.stderr);
  assert.ok(!JSON.stringify(asked).includes(SECRET));
});

test("undo takes back an unknown command that ran", { skip }, async () => {
  await using place = await household(FILES);
  await using model = await startModel([bash('D=$(echo src); rm -rf "$D" "$(cat gone)"'), FINE]);
  const ran = await harness(place, ["run", "--json", ...model.flags, "do it"]);
  assert.deepEqual([ran.code, existsSync(place.at("work/src/a.js"))], [0, false], ran.stderr);
  const undone = await harness(place, ["undo"]);
  assert.deepEqual(
    [undone.code, readFileSync(place.at("work/src/a.js"), "utf8")],
    [0, "1;\n"],
    undone.stderr,
  );
});

test("park keeps only uncontained commands for a person", { skip }, async () => {
  await using place = await household(FILES);
  await using model = await startModel([bash('eval "$(echo touch ran)"'), bash("cat .env"), FINE]);
  const ran = await harness(place, ["run", "--json", "--on-ask", "park", ...model.flags, "do it"]);
  assert.deepEqual([ran.code, existsSync(place.at("work/ran"))], [7, true], ran.stderr);
  const asked = eventsOf(ran).find((event) => event.type === "call.parked");
  assert.equal(asked?.text, "cat .env");
});

test("policy check agrees, with and without a granted host", async () => {
  await using place = await household(FILES);
  const contained = async (words: readonly string[]): Promise<unknown> => {
    const { stdout } = await harness(place, ["policy", "check", "--json", ...words]);
    return (JSON.parse(stdout) as { readonly contained: boolean }).contained;
  };
  assert.equal(await contained(["--", "mytool x"]), true);
  assert.equal(await contained(["--allow-domain", "api.example.org", "--", "mytool x"]), false);
  assert.equal(await contained(["--", "curl https://api.example.org/x"]), false);
  assert.equal(
    await contained(["--allow-domain", "*.example.org", "--", "curl https://api.example.org/x"]),
    true,
  );
});
