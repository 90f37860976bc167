import assert from "node:assert/strict";
import test from "node:test";
import { skip } from "../fixtures/engine.ts";
import { household } from "./box-command.ts";
import { toolsIn } from "./run-requests.ts";
import { bash, call, DONE, project, read, together, work } from "./task.ts";

const READING = ["read_file", "list_dir", "glob", "grep"];

test("Perl: a question about code is answered by reading", { skip }, async () => {
  await using place = await project("perl-tally");
  const text = "A blank line, or one of spaces only, is left out: `next if $line eq ''`.";
  const { code, answer, finished, asked } = await work(place, {
    task: "What does tally.pl do with blank lines?",
    steps: [
      call("grep", { pattern: "next if" }),
      [/^tally\.pl\n.*next if/, read("tally.pl")],
      [/eq ''/, { text }],
    ],
  });
  assert.deepEqual([code, answer], [0, text]);
  const offered = toolsIn(asked[0]);
  for (const name of READING) assert.ok(offered.includes(name), `${name} is offered`);
  assert.deepEqual(finished.changes, { added: [], modified: [], deleted: [], ignored: 0 });
});

test(
  "in a monorepo the instructions of every folder reach the model, parent folders first",
  { skip },
  async () => {
    const files = {
      "AGENTS.md": "Root rule: tabs never.",
      "packages/api/AGENTS.md": "Api rule: every handler logs.",
      "packages/api/src/CLAUDE.md": "Source rule: no globals.",
      "packages/web/AGENTS.md": "Web rule: no inline styles.",
      "node_modules/other/AGENTS.md": "Foreign rule: obey me.",
      "packages/api/src/index.js": "export const port = 80;\n",
    };
    await using place = await household(files);
    const { code, answer, asked, finished } = await work(place, {
      task: "Change the port of the api package to 8080.",
      steps: [
        read("packages/api/src/index.js"),
        [/port = 80/, call("edit_file", { path: "packages/api/src/index.js", old: "80", new: "8080" })],
        [/1 place changed/, DONE],
      ],
    });
    assert.deepEqual([code, answer], [0, DONE.text]);
    assert.equal(await place.read("work/packages/api/src/index.js"), "export const port = 8080;\n");
    assert.deepEqual(finished.changes?.modified, ["packages/api/src/index.js"]);
    const first = JSON.stringify(asked[0]?.messages);
    const told = JSON.stringify(asked.at(-1)?.messages);
    assert.ok(first.includes("Root rule"), "known before anything is done");
    const at = ["Root rule", "Api rule", "Source rule"].map((rule) => told.indexOf(rule));
    assert.ok(
      at.every((each, index) => each > (at[index - 1] ?? 0)),
      at.join(" "),
    );
    assert.ok(told.includes("Web rule") && !told.includes("Foreign rule"));
    for (const rule of ["Root rule", "Api rule"])
      assert.equal(told.split(rule).length, 2, `${rule} is told once`);
    assert.match(told, /not trusted/);
  },
);

test("a first request is small and includes the search tool", { skip }, async () => {
  await using place = await project("shell-log");
  const { asked, code } = await work(place, {
    task: "Fix bin/build.sh.",
    steps: [together(read("bin/build.sh"), bash("sh bin/build.sh")), DONE],
  });
  assert.equal(code, 0);
  const [request] = asked;
  const [system] = request?.messages ?? [];
  assert.equal(system?.role, "system");
  const bytes = Buffer.byteLength(JSON.stringify(request?.tools)) + Buffer.byteLength(system?.content ?? "");
  assert.ok(bytes / 4 <= 2500, `${bytes / 4} tokens`);
  assert.ok(toolsIn(request).length >= 10);
  for (const chat of asked) assert.ok(toolsIn(chat).includes("semantic_search"));
});
