// also slow: two whole visits to compare
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import test from "node:test";
import { promisify } from "node:util";
import type { VetComparison, VetReport } from "../../src/core/behaviour.ts";
import { skip } from "../fixtures/engine.ts";
import { giveAway } from "../fixtures/give-away.ts";
import { scratch, type Scratch } from "../fixtures/scratch.ts";
import { harness, type Ran } from "./run-command.ts";
import { slowTest } from "../fixtures/slow-test.ts";

const run = promisify(execFile);

const HOSTILE = {
  "package.json": JSON.stringify({
    name: "bad",
    version: "1.0.0",
    scripts: { postinstall: "node post.js", test: "node --test" },
    dependencies: { "left-pad": "^1.3.0" },
  }),
  "post.js": `const fs = require("fs");
fs.mkdirSync(".git/hooks", { recursive: true });
fs.writeFileSync(".git/hooks/pre-commit", "#!/bin/sh\\n");
console.log(process.env.CI === undefined ? "no CI here" : "CI");
console.log("\\u001b]0;title\\u0007");
`,
  "a.test.js": 'require("node:test")("ok", () => undefined);\n',
};

const BENIGN = {
  "package.json": JSON.stringify({ name: "good", version: "1.0.0", scripts: { test: "node --test" } }),
  "index.js": "module.exports = (a, b) => a + b;\n",
  "test.test.js":
    'const test = require("node:test");\nconst assert = require("node:assert");\ntest("sum", () => assert.equal(require("./index.js")(1, 2), 3));\n',
};

async function placeWith(
  trees: Readonly<Record<string, Readonly<Record<string, string>>>>,
): Promise<Scratch> {
  const place = await scratch();
  await mkdir(place.at("work"));
  for (const [name, files] of Object.entries(trees))
    for (const [file, text] of Object.entries(files)) await place.write(`work/${name}/${file}`, text);
  await giveAway(place.at("work"));
  return place;
}

const vet = (place: Scratch, ...words: readonly string[]): Promise<Ran> => harness(place, ["vet", ...words]);

function reportOf(ran: Ran): VetReport {
  assert.match(ran.stdout, /^\{/, ran.stderr);
  return JSON.parse(ran.stdout) as VetReport;
}

const rulesOf = ({ findings }: VetReport): ReadonlySet<string> => new Set(findings.map(({ rule }) => rule));
const commandsOf = ({ steps }: VetReport): readonly string[] => steps.map(({ command }) => command);

/** Nothing of it is left on the host. */
function nothingLeft(place: Scratch): void {
  const folders = [".cache/harness/vet/boxes", ".local/state/harness/boxes"];
  const left = folders.flatMap((name) => (existsSync(place.at(name)) ? readdirSync(place.at(name)) : []));
  const layers = place.at(".local/state/harness/layers");
  const kept = existsSync(layers) ? readdirSync(layers).filter((name) => !name.startsWith(".")) : [];
  assert.deepEqual([...left, ...kept], []);
}

test(
  "a folder's scripts run even without its dependencies, it stays unchanged, and the exit code is the verdict",
  { skip },
  async () => {
    await using place = await placeWith({ bad: HOSTILE, good: BENIGN });
    const ran = await vet(place, "--json", "bad");
    const report = reportOf(ran);
    assert.deepEqual([report.verdict, report.exit_code, ran.code], ["hostile", 40, 40]);
    assert.ok(rulesOf(report).has("run.hooks"));
    assert.equal(report.steps[0]?.output.split("\n")[0], "no CI here");
    assert.deepEqual(commandsOf(report).slice(0, 2), ["npm run postinstall", "npm test --silent"]);
    assert.doesNotMatch(ran.stdout, /\\u001b/);
    assert.ok(!existsSync(place.at("work/bad/.git")));
    assert.deepEqual([report.repository.kind, report.repository.files, report.granted], ["folder", 3, []]);
    assert.ok(report.own_ms <= report.took_ms);
    const good = await vet(place, "good");
    assert.equal(good.code, 0, good.stdout);
    assert.match(good.stdout, /^QUIET {2}good/);
    assert.match(good.stdout, /npm install --offline/);
    nothingLeft(place);
  },
);

test("a given command runs instead of detected ones", { skip }, async () => {
  await using place = await placeWith({ good: BENIGN });
  const words = ["good", "--", "sh", "-c", "echo x > made; echo '--json'; exit 3"];
  const report = reportOf(await vet(place, "--json", ...words));
  const [step, ...more] = report.steps;
  assert.deepEqual([step?.what, step?.exit_code, step?.from, more], ["given", 3, null, []]);
  assert.deepEqual(step?.changes.added, ["made"]);
  assert.equal(report.verdict, "quiet");
  const greedy = ["good", "--", "sh", "-c", "cat ~/.ssh/id_ed25519; echo went on > made"];
  const caught = reportOf(await vet(place, "--json", ...greedy));
  assert.deepEqual([caught.verdict, caught.steps[0]?.changes.added], ["hostile", []]);
  const touch = caught.findings.find(({ rule }) => rule === "run.canary");
  const past = caught.steps[1];
  assert.deepEqual([past?.observed.touched, past?.exit_code, past?.changes.added], [null, 0, ["made"]]);
  assert.match(touch?.by?.at(-1) ?? "", /^cat \/home\/box\/\.ssh\/id_ed25519$/);
});

const PACK = `import io, os, sys, tarfile, zipfile
def tar(name, mode, entries):
    with tarfile.open(name, mode) as t:
        for path, data in entries:
            info = tarfile.TarInfo(path)
            if data is None: info.type = tarfile.SYMTYPE; info.linkname = "/etc"; t.addfile(info)
            else: info.size = len(data); t.addfile(info, io.BytesIO(data))
tar("evil.tar.gz", "w:gz", [("p/a.txt", b"a"), ("../out.txt", b"x"), ("/abs.txt", b"x"), ("p/link", None), ("p/link/passwd", b"x"), ("p/a.txt", b"b")])
with zipfile.ZipFile("bomb.zip", "w", zipfile.ZIP_DEFLATED) as z:
    with z.open("zeros", "w", force_zip64=True) as f:
        for _ in range(400): f.write(bytes(1 << 20))
open("none.zip", "wb").write(b"PK\\x03\\x04 no more")
open("empty.tgz", "wb").close()
`;

test(
  "archives of every kind are unpacked in the box, never outside their folder, and bombs are detected",
  { skip },
  async () => {
    await using place = await placeWith({ bad: HOSTILE });
    const at = place.at("work");
    await run("tar", ["czf", "bad.tgz", "bad"], { cwd: at });
    await run("tar", ["cJf", "bad.tar.xz", "-C", "bad", "."], { cwd: at });
    await run("python3", ["-c", PACK], { cwd: at });
    for (const name of ["bad.tgz", "bad.tar.xz"]) {
      const report = reportOf(await vet(place, "--json", name));
      assert.deepEqual([report.repository.kind, report.verdict], ["archive", "hostile"]);
      assert.equal(commandsOf(report)[0], "npm run postinstall", name);
    }
    const evil = reportOf(await vet(place, "--json", "evil.tar.gz"));
    const told = evil.findings.filter(({ rule }) => rule.startsWith("unpack."));
    assert.deepEqual(
      told.map(({ rule, path: file }) => [rule, file]),
      [
        ["unpack.outside", "../out.txt"],
        ["unpack.outside", "/abs.txt"],
        ["unpack.outside", "p/link/passwd"],
        ["unpack.twice", "p/a.txt"],
      ],
    );
    const bomb = reportOf(await vet(place, "--json", "bomb.zip"));
    assert.deepEqual([bomb.verdict, rulesOf(bomb).has("unpack.bomb"), bomb.steps], ["hostile", true, []]);
    assert.match(bomb.unseen[0] ?? "", /only a part of the archive/);
    for (const name of ["none.zip", "empty.tgz"]) {
      const ran = await vet(place, name);
      assert.equal(ran.code, 2);
      assert.match(ran.stderr, /cannot be unpacked/);
    }
    nothingLeft(place);
  },
);

test(
  "a git repository is cloned in the box, also at a branch, and a refused address has a reason",
  { skip },
  async () => {
    await using place = await placeWith({ bad: HOSTILE });
    const at = place.at("work/bad");
    const git = (...words: readonly string[]) =>
      run(
        "git",
        ["-c", "safe.directory=*", "-c", "user.name=a", "-c", "user.email=a@example.test", ...words],
        { cwd: at },
      );
    await git("init", "-q", "-b", "main");
    await git("add", "-A");
    await git("commit", "-q", "-m", "one");
    await git("checkout", "-q", "-b", "other");
    await git("rm", "-q", "post.js");
    await git("commit", "-q", "-m", "two");
    await git("clone", "-q", "--bare", ".", place.at("work/bare.git"));
    await git("init", "-q", "--bare", place.at("work/empty.git"));
    await giveAway(place.at("work"));
    const { stdout: head } = await git("rev-parse", "main");
    const main = reportOf(await vet(place, "--json", "bare.git#main"));
    assert.deepEqual([main.repository.kind, main.repository.commit], ["git", head.trim()]);
    assert.ok(rulesOf(main).has("run.hooks"));
    const other = reportOf(await vet(place, "--json", `file://${place.at("work/bare.git")}#other`));
    assert.deepEqual([rulesOf(other).has("run.hooks"), other.steps[0]?.exit_code], [false, 1]);
    for (const [name, why] of [
      ["git@example.test:a/b.git", /ssh is not supported/],
      ["ssh://example.test/a", /ssh is not supported/],
      ["git://example.test/a", /not supported/],
      ["http://example.test/a", /without TLS/],
      ["https://me:secret@example.test/a", /secrets never go into a box/],
      ["nothing-there", /no such file or folder/],
      [`file://${place.at("work")}`, /work is not a git repository\n/],
      ["bare.git#gone", /error: git clone: fatal: .*gone/],
      ["empty.git", /has no commit on its current branch.*\n {2}next: harness vet REPO#BRANCH/],
    ] as const) {
      const ran = await vet(place, name);
      assert.equal(ran.code, 2, ran.stderr);
      assert.match(ran.stderr, why);
    }
    nothingLeft(place);
  },
);

test("an interrupted vet ends with 130 and leaves nothing", { skip }, async () => {
  await using place = await placeWith({ good: BENIGN });
  await place.write("work/good/Makefile", "all:\n\techo begun; sleep 60\n");
  const packed = place.at("work/good.tgz");
  await run("tar", ["czf", packed, "good"], { cwd: place.at("work") });
  const ran = await harness(place, ["vet", "good.tgz", "--", "sleep", "60"], {
    whenMade: [place.at(".cache/harness/vet/boxes"), (child) => setTimeout(() => child.kill("SIGINT"), 1500)],
  });
  assert.equal(ran.code, 130, ran.stderr);
  nothingLeft(place);
});

test("without an engine it ends with 6, without a repository with 2", { skip }, async () => {
  await using place = await placeWith({ good: BENIGN });
  const none = await harness(place, ["vet", "good"], {
    env: { DOCKER_HOST: `unix://${place.at("none.sock")}` },
  });
  assert.equal(none.code, 6, none.stderr);
  const missing = await harness(place, ["vet"]);
  assert.equal(missing.code, 2);
});

slowTest(
  "two versions or two stored answers can be compared, and new findings decide",
  { skip },
  async () => {
    const first = { "go.sum": "example.org/a v1.0.0 h1:a=\n", "a.js": "fetch('https://a.example.org')\n" };
    const second = { "go.sum": "example.org/a v1.0.0 h1:b=\n", "a.js": "fetch('https://b.example.org')\n" };
    await using place = await placeWith({ old: BENIGN, bad: HOSTILE, first, second });
    const kept = await Promise.all(["old", "bad"].map((name) => vet(place, "--json", name)));
    for (const [at, name] of ["old", "bad"].entries())
      await place.write(`work/${name}.json`, kept[at]?.stdout ?? "");
    const compared = async (...words: readonly string[]): Promise<readonly unknown[]> => {
      const ran = await vet(place, "--compare", "--json", ...words);
      const told = JSON.parse(ran.stdout) as VetComparison;
      return [
        ran.code,
        told.verdict,
        told.findings.some(({ rule }) => rule === "run.hooks"),
        told.gone.length > 0,
      ];
    };
    assert.deepEqual(await compared("old.json", "bad.json"), [40, "hostile", true, false]);
    assert.deepEqual(await compared("bad.json", "bad"), [0, "quiet", false, false]);
    const text = await vet(place, "--compare", "bad.json", "old.json");
    assert.match(text.stdout, /^QUIET {2}what is new/);
    assert.match(text.stdout, /no longer has the install command npm run postinstall/);
    // Of two trees all that is known of them is compared, of a saved answer what it holds.
    const trees = await vet(place, "--compare", "--json", "first", "second");
    assert.match(trees.stdout, /change\.integrity.*change\.host/s, trees.stderr);
    assert.deepEqual([trees.code, /saved report/.test(trees.stdout)], [40, false]);
    assert.match(text.stdout, /only the findings and commands of a saved report are compared/);
    await place.write("work/other.json", "{}");
    const wrong = await vet(place, "--compare", "other.json", "old.json");
    assert.match(wrong.stderr, /neither a report of harness vet --json/);
    for (const words of [
      ["--compare", "old"],
      ["old", "bad"],
      ["--compare", "old", "bad", "--", "ls"],
      ["old", "--"],
    ])
      assert.equal((await vet(place, ...words)).code, 2, words.join(" "));
  },
);

test("for a commit range new findings are reported, and only what it touches runs", { skip }, async () => {
  await using place = await placeWith({
    repo: { ...BENIGN, "sub/package.json": '{"scripts":{"postinstall":"true"}}' },
  });
  const at = place.at("work/repo");
  const git = (...words: readonly string[]) =>
    run("git", ["-c", "safe.directory=*", "-c", "user.name=a", "-c", "user.email=a@example.test", ...words], {
      cwd: at,
    });
  const commit = async (): Promise<void> => {
    await git("add", "-A");
    await git("commit", "-q", "-m", "x");
  };
  await git("init", "-q", "-b", "main");
  await commit();
  await place.write("work/repo/README.md", "words\n");
  await commit();
  const words = reportOf(await vet(place, "--json", "--diff", "HEAD~1..HEAD", "repo"));
  assert.deepEqual([words.verdict, words.steps], ["quiet", []]);
  await git("checkout", "-q", "-b", "other");
  for (const [name, text] of Object.entries(HOSTILE)) await place.write(`work/repo/${name}`, text);
  await place.write("work/repo/.gitattributes", "post.js export-ignore\n");
  await commit();
  await giveAway(place.at("work"));
  const ran = await vet(place, "--json", "--diff", "main...other", "repo");
  const report = reportOf(ran);
  assert.deepEqual([ran.code, report.repository.kind], [40, "git"]);
  assert.ok(rulesOf(report).has("run.hooks"));
  assert.ok(commandsOf(report).includes("npm run postinstall"));
  assert.ok(!report.steps.some(({ from }) => from === "sub/package.json"));
  assert.match(
    report.unseen[0] ?? "",
    /only what the change from [0-9a-f]{12} touches was run: \d files differ/,
  );
  const wrong = await vet(place, "--diff", "nothing..HEAD", "repo");
  assert.equal(wrong.code, 2, wrong.stderr);
  assert.equal((await vet(place, "--diff", "--output=x..HEAD", "repo")).code, 2);
  nothingLeft(place);
});

test("the page contains everything, and nothing in it is active", { skip }, async () => {
  await using place = await placeWith({ "<b>bad": HOSTILE });
  const ran = await vet(
    place,
    "--html",
    "page.html",
    "<b>bad",
    "--",
    "sh",
    "-c",
    "mkdir -p .git/hooks; echo '<script>alert(1)</script>' | tee .git/hooks/pre-push",
  );
  assert.equal(ran.code, 40, ran.stderr);
  const page = await place.read("work/page.html");
  assert.match(page, /^<!doctype html>/);
  assert.match(page, /run\.hooks/);
  assert.match(page, /&lt;b&gt;bad/);
  assert.doesNotMatch(page, /<script|<b>/);
  await place.write("work/own.html", "mine");
  assert.equal((await vet(place, "--html", "own.html", "<b>bad", "--", "true")).code, 2);
  assert.equal(await place.read("work/own.html"), "mine");
  for (const [file, why] of [
    ["own.html", /own\.html: already exists/],
    ["no-folder/page.html", /no-folder\/page\.html: cannot be written/],
  ] as const) {
    const early = await vet(place, "--html", file, "nothing-there");
    assert.equal(early.code, 2);
    assert.match(early.stderr, why, "before anything is looked at");
  }
});
