import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "node:test";
import { ROOT } from "./package.ts";

const DIST = path.join(ROOT, "dist");
assert.ok(existsSync(path.join(DIST, "main.cjs")), "not built, so not tested: npm run build");

/** The shared files of the bundle, by their groups, that are there before a command's first line runs. */
function groupsOf(entry: string): ReadonlySet<string> {
  const seen = new Set<string>();
  const open = [path.join(DIST, entry)];
  for (let file = open.pop(); file !== undefined; file = open.pop()) {
    if (seen.has(file)) continue;
    seen.add(file);
    const text = readFileSync(file, "utf8");
    for (const [, next = ""] of text.matchAll(/(?<!=>)require\("(\.[^"]+)"\)/g))
      open.push(path.resolve(path.dirname(file), next));
  }
  return new Set([...seen].map((file) => path.basename(file).replace(/-[\w-]{8}\.cjs$/, "")));
}

/** What each of these has no need of, and would wait for. */
const WITHOUT: readonly (readonly [entry: string, ...groups: readonly string[]])[] = [
  ["program.cjs", "start", "schemas", "oclif"],
  ["commands/config/list.cjs", "agent", "box", "engine", "events", "models", "policy", "render", "sessions"],
  ["commands/policy/check.cjs", "agent", "box", "engine", "events", "models", "run", "sessions"],
  ["commands/policy/path.cjs", "agent", "box", "engine", "events", "models", "run", "sessions"],
  [
    "commands/search.cjs",
    "agent",
    "box",
    "engine",
    "events",
    "models",
    "policy",
    "render",
    "run",
    "schemas",
    "sessions",
  ],
  ["commands/sessions/list.cjs", "agent", "box", "engine", "events", "models", "policy", "run"],
  ["commands/sandbox/exec.cjs", "agent", "events", "models", "policy", "render", "run", "sessions"],
  ["commands/undo.cjs", "agent", "events", "models", "policy", "run"],
];

for (const [entry, ...groups] of WITHOUT)
  test(`${entry} loads nothing of ${groups.join(", ")}`, () => {
    const loaded = groupsOf(entry);
    assert.ok(loaded.size > 1, [...loaded].join(" "));
    assert.deepEqual(
      groups.filter((group) => loaded.has(group)),
      [],
    );
  });

test("a run loads the code for its first request from shared files", () => {
  const loaded = groupsOf("commands/run.cjs");
  for (const group of ["start", "oclif"]) assert.ok(loaded.has(group), [...loaded].join(" "));
});

test("a search loads all of its files directly", () => {
  const loaded = groupsOf("commands/search.cjs");
  for (const group of ["start", "search-query", "progress"])
    assert.ok(loaded.has(group), [...loaded].join(" "));
  const asked = [...globSync("chunks/search-query-*.cjs", { cwd: DIST })].map((file) =>
    readFileSync(path.join(DIST, file), "utf8"),
  );
  assert.ok(asked.length > 0);
  const led = asked.flatMap((text) =>
    [...text.matchAll(/=>require\("\.\/([\w-]+)-[\w-]{8}\.cjs/g)].map(([, to]) => to),
  );
  assert.ok(led.includes("update-index"), led.join(" "));
  assert.deepEqual(
    led.filter((name) => ["rank-hits", "open-store", "embedded-store"].includes(name ?? "")),
    [],
  );
});

/** Parts of Node that cost a start more than what it does. */
const HEAVY = ["internal/deps/undici/undici", "internal/crypto/webcrypto", "tls", "http2", "worker_threads"];

const TELLS = `process.once("exit", () => require("node:fs").writeFileSync(process.env.LOADED, process.moduleLoadList.join("\\n")));`;

const STARTS: readonly (readonly [words: readonly string[], ...more: readonly string[]])[] = [
  [["policy", "check", "--", "ls"], "crypto", "http", "tty", "perf_hooks", "readline"],
  [["config", "list"], "crypto", "http", "tty", "perf_hooks", "readline"],
  [["model", "list"]],
];

for (const [words, ...more] of STARTS)
  test(`harness ${words.join(" ")} makes Node load no unneeded modules`, (t) => {
    const folder = mkdtempSync(path.join(tmpdir(), "harness-loaded-"));
    t.after(() => rmSync(folder, { recursive: true }));
    const [tells, told] = [path.join(folder, "tells.cjs"), path.join(folder, "loaded")];
    writeFileSync(tells, TELLS);
    // No server is at this address: it is asked all the same.
    const env = { PATH: process.env["PATH"], HOME: folder, OLLAMA_HOST: "127.0.0.1:9", LOADED: told };
    // Into a pipe Node would write with all of its network.
    spawnSync(process.execPath, ["--require", tells, path.join(DIST, "main.cjs"), ...words], {
      env,
      stdio: "ignore",
    });
    const loaded = new Set(readFileSync(told, "utf8").split("\n"));
    assert.ok(loaded.has("NativeModule stream"), `${loaded.size} modules`);
    assert.deepEqual(
      [...HEAVY, ...more].filter((name) => loaded.has(`NativeModule ${name}`)),
      [],
    );
  });

test("the bundle speaks HTTP to engines and contains neither ssh nor gRPC", () => {
  const texts = globSync("**/*.cjs", { cwd: DIST }).map((file) =>
    readFileSync(path.join(DIST, file), "utf8"),
  );
  const holding = (mark: string): number => texts.filter((text) => text.includes(mark)).length;
  assert.deepEqual(
    ["/containers/create", "ssh-connection", "grpc-status"].map(holding).map(Math.sign),
    [1, 0, 0],
  );
});

test("no file of the bundle uses import for a built-in module", () => {
  const files = globSync("**/*.cjs", { cwd: DIST });
  assert.ok(files.length > 50, `${files.length} files`);
  const found = files.filter((file) =>
    /\b(?:from|import\(?)\s*["'`]node:/.test(readFileSync(path.join(DIST, file), "utf8")),
  );
  assert.deepEqual(found, []);
});
