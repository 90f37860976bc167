import assert from "node:assert/strict";
import test from "node:test";
import { commandClasses } from "../fixtures/command-classes.ts";

/** What these are about may come through a pipe; ids and names never do: a loop in a shell has its own list there. */
const PIPED = new Set(["run prompt", "search query"]);

test("no command reads an id, a name or a folder from stdin", async () => {
  const taking = [...(await commandClasses())].flatMap(([id, { args }]) =>
    Object.entries(args).flatMap(([name, arg]) => (arg.ignoreStdin === true ? [] : [`${id} ${name}`])),
  );
  assert.deepEqual(new Set(taking), PIPED);
});
