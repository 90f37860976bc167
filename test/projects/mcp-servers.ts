/**
 * `npm run test:mcp`: tests the reference servers of the Model Context Protocol, fetched from npm and started in the
 * box as a person would. Run by hand, apart from the tests: it needs the registry and an engine. Exits with 1 if
 * something is wrong.
 */
import { spawnSync } from "node:child_process";
import path from "node:path";
import { household } from "../e2e/box-command.ts";
import { finishedOf, harness, type Said, startModel } from "../e2e/run-command.ts";
import { resultsIn, toolsIn } from "../e2e/run-requests.ts";
import { giveAway } from "../fixtures/give-away.ts";

const VERSION = "2026.8.31";
const SERVERS = ["everything", "filesystem"] as const;
const entry = (name: string): string => `node_modules/@modelcontextprotocol/server-${name}/dist/index.js`;

await using place = await household({ "notes/a.txt": "the first note\n" });
const packages = SERVERS.map((name) => `@modelcontextprotocol/server-${name}@${VERSION}`);
const installed = spawnSync("npm", ["install", "--no-audit", "--no-fund", "--ignore-scripts", ...packages], {
  cwd: place.at("work"),
  stdio: ["ignore", "ignore", "inherit"],
});
if (installed.status !== 0) process.exit(2);
await giveAway(place.at("work"));
await place.write(
  ".config/harness/config.json",
  JSON.stringify({
    mcp: {
      all: { command: ["node", entry("everything"), "stdio"], init_timeout: "20s" },
      files: {
        command: ["node", entry("filesystem"), "."],
        init_timeout: "20s",
        tools: { deny: ["move_*"] },
      },
    },
  }),
);

const calls: readonly (readonly [tool: string, args: Readonly<Record<string, unknown>>, expected: RegExp])[] =
  [
    ["all__echo", { message: "hello" }, /Echo: hello/],
    ["all__get-sum", { a: 2, b: 3 }, /\b5\b/],
    ["all__get-sum", { a: "two", b: 3 }, /a: must be number/],
    ["all__get-tiny-image", {}, /\[image image\/png, [\d.]+ K?i?B: not passed on\]/],
    ["all__get-structured-content", { location: "Chicago" }, /temperature/],
    ["mcp_resource", { server: "all" }, /resources/],
    ["mcp_prompt", { server: "all" }, /prompts/],
    ["files__read_text_file", { path: "notes/a.txt" }, /the first note/],
    ["files__list_directory", { path: "." }, /\[DIR\] notes/],
    ["files__write_file", { path: "notes/b.txt", content: "by a server" }, /notes\/b\.txt/],
    ["files__read_text_file", { path: "/etc/passwd" }, /denied|outside/],
  ];
const replies: readonly Said[] = [{ calls: calls.map(([tool, args]) => [tool, args]) }, { text: "done" }];
await using model = await startModel(replies);
const ran = await harness(place, ["run", "--json", ...model.flags, "change the notes"]);
const offered = toolsIn(model.asked()[0]).filter((name) => name.includes("__"));
const results = resultsIn(model.asked()[1]);
const rows = calls.map(([tool, , expected], at) => ({
  tool,
  ok: expected.test(results[at] ?? ""),
  said: (results[at] ?? "").slice(0, 100),
}));
const checks = [
  ...rows,
  { tool: "exit", ok: ran.code === 0, said: `${ran.code} ${finishedOf(ran).reason}` },
  { tool: "denied", ok: !offered.includes("files__move_file"), said: offered.join(" ") },
  { tool: "undo", ok: (await harness(place, ["undo"])).code === 0, said: path.basename(place.path) },
];
for (const { tool, ok, said } of checks) process.stdout.write(`${ok ? "ok  " : "BAD "} ${tool}: ${said}\n`);
process.exitCode = checks.every(({ ok }) => ok) ? 0 : 1;
