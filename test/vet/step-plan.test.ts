import assert from "node:assert/strict";
import test from "node:test";
import { type PlannedStep, planSteps } from "../../src/vet/step-plan.ts";

const plan = (
  files: Readonly<Record<string, string>>,
  more: { readonly test?: string; readonly granted?: readonly string[]; readonly folder?: string } = {},
): readonly PlannedStep[] =>
  planSteps({
    places: [
      {
        folder: more.folder ?? "",
        names: new Set(Object.keys(files)),
        text: (name) => files[name] ?? "",
      },
    ],
    test: more.test,
    granted: new Set(more.granted),
  });

const shown = (steps: readonly PlannedStep[]): readonly string[] =>
  steps.map(({ what, command, orElse = [] }) =>
    [`${what}: ${command}`, ...orElse.map((each) => each.command)].join(" | "),
  );

const manifest = (more: object): Readonly<Record<string, string>> => ({
  "package.json": JSON.stringify(more),
});

test("npm: a complete installation where it needs no network, or else its scripts in npm's order", () => {
  const scripts = { postinstall: "b", preinstall: "a", prepare: "c", build: "d", start: "e" };
  assert.deepEqual(shown(plan(manifest({ scripts }), { test: "npm test --silent" })), [
    "install: npm install --offline | npm run preinstall | npm run postinstall | npm run prepare",
    "build: npm run build",
    "test: npm test --silent",
  ]);
  const needy = { scripts, dependencies: { a: "^1" } };
  assert.deepEqual(shown(plan(manifest(needy))), [
    "install: npm run preinstall",
    "install: npm run postinstall",
    "install: npm run prepare",
    "build: npm run build",
  ]);
  const locked = { ...manifest({ dependencies: { a: "file:./a" } }), "package-lock.json": "{}" };
  assert.deepEqual(shown(plan(locked)), ["install: npm ci --offline"]);
  assert.deepEqual(
    shown(plan({ ...manifest(needy), "package-lock.json": "{}" }, { granted: ["npm"] }))[0]?.slice(0, 15),
    "install: npm ci",
  );
  assert.deepEqual(shown(plan(manifest({ scripts: { install: "x" } }), { folder: "packages/a" })), [
    "install: npm run install",
  ]);
});

test("an invalid or unusual manifest leads to no wrong step", () => {
  for (const text of ["", "[]", "{", '{"scripts":[]}', '{"scripts":{"install":1},"dependencies":null}'])
    assert.deepEqual(shown(plan({ "package.json": text })), ["install: npm install --offline"]);
});

test("Python: pip where it is available, or else the project's own code with stand-ins", () => {
  assert.deepEqual(shown(plan({ "setup.py": "" })), ["install: pip install . | python3 setup.py install"]);
  const project = '[build-system]\nbuild-backend = "own"\nbackend-path = ["."]\n';
  assert.deepEqual(shown(plan({ "pyproject.toml": project })), [
    "install: pip install . | python3 -m own: build_wheel",
  ]);
  assert.deepEqual(shown(plan({ "pyproject.toml": "[tool.black]\n" })), []);
  assert.deepEqual(shown(plan({ "a.py": "" }, { test: "python3 -m pytest -q" })), [
    "test: python3 -m pytest -q | python3 -m pytest",
  ]);
});

test("others: composer's scripts, make, cargo, go, wrappers and top-level scripts", () => {
  const composer = JSON.stringify({ scripts: { "post-install-cmd": ["@php a.php", "sh b.sh"], test: "x" } });
  assert.deepEqual(shown(plan({ "composer.json": composer })), [
    "install: composer install --no-interaction | composer run post-install-cmd: @php a.php | composer run post-install-cmd: sh b.sh",
  ]);
  const many = {
    Makefile: "all:\n",
    "Cargo.toml": "",
    "go.mod": "",
    gradlew: "",
    mvnw: "",
    "install.sh": "#!/bin/sh\n",
    configure: "",
  };
  assert.deepEqual(shown(plan(many)), [
    "install: sh ./install.sh",
    "build: sh ./configure",
    "build: make",
    "build: cargo build --offline",
    "build: go generate ./...",
    "build: go build -o /dev/null ./...",
    "build: sh ./mvnw -B -o -q compile",
    "build: sh ./gradlew --no-daemon --offline classes",
  ]);
  assert.deepEqual(plan({ "README.md": "" }), []);
});
