import assert from "node:assert/strict";
import test from "node:test";
import { anyText, fc } from "../../fixtures/property.ts";
import { MODES, VERDICTS } from "../../../src/core/decision.ts";
import { PROTECTED } from "../../../src/core/file-names.ts";
import { decidePath, type PathContext } from "../../../src/policy/paths/decide-path.ts";
import { readIgnore } from "../../../src/policy/paths/ignore-rules.ts";
import { type PathAccess, placeOf } from "../../../src/policy/paths/path-place.ts";

const CONTEXT: PathContext = {
  mode: "workspace-write",
  workspace: "/home/dev/project",
  home: "/home/dev",
  ignore: readIgnore("hidden\n*.dump"),
};

const NAMES = [
  ...PROTECTED.map(({ name }) => name.replace("*", "x")),
  ..."a b.ts src .. . node_modules .env .ssh id_rsa x.pem etc shadow passwd dev null sda tmp proc self root".split(
    " ",
  ),
  ..."cwd environ home dev project usr bin .bashrc .config autostart hidden cron.d".split(" "),
];
const path = fc
  .tuple(
    fc.constantFrom("", "/", "~/", "/home/dev/project/", "/tmp/"),
    fc.array(fc.constantFrom(...NAMES), { minLength: 1 }),
  )
  .map(([start, names]) => start + names.join("/"));
const op = fc.constantFrom<PathAccess>("read", "write");
const mode = fc.constantFrom(...MODES);

const rank = (text: string, how: PathAccess, context: PathContext = CONTEXT): number =>
  VERDICTS.indexOf(decidePath(text, how, context).decision);

const notMilder = (changed: string, given: string, how: PathAccess): void =>
  assert.ok(rank(changed, how) >= rank(given, how), `${how} ${changed} is milder than ${given}`);

test("dots, doubled slashes and detours do not change a decision", () => {
  const detour = fc.constantFrom("/", "./", "x/../", "/./", ".git/../", "a/b/../../");
  fc.assert(
    fc.property(path, op, detour, fc.nat(), (given, how, extra, where) => {
      const slashes = [...given.matchAll(/\//g)].map(({ index }) => index + 1);
      const at = slashes[where % Math.max(1, slashes.length)] ?? 0;
      // A detour below a link of /proc is one from where it leads, which these paths do not always have.
      fc.pre(!given.includes("proc") && !(at === 0 && extra.startsWith("/")));
      const changed = given.slice(0, at) + extra + given.slice(at);
      assert.equal(rank(changed, how), rank(given, how), `${given} ${changed}`);
    }),
  );
});

test("the letter case of a protected or secret name never makes a decision milder", () => {
  const loud = ".git .husky .vscode .envrc .mcp.json .env .ssh id_rsa x.pem .bashrc hidden x.dump".split(" ");
  fc.assert(
    fc.property(
      fc.constantFrom(...loud),
      fc.infiniteStream(fc.boolean()),
      op,
      fc.boolean(),
      (name, upper, how, deep) => {
        const other = name
          .split("")
          .map((letter) => (upper.next().value === true ? letter.toUpperCase() : letter))
          .join("");
        const [before, after] = deep ? ["src/", "/x"] : ["", ""];
        notMilder(before + other + after, before + name + after, how);
      },
    ),
  );
});

test("spellings that other file systems treat as the same name are not milder", () => {
  const change = fc.constantFrom<(name: string) => string>(
    (name) => `${name}.`,
    (name) => `${name} `,
    (name) => `${name}::$INDEX_ALLOCATION`,
    (name) => `${name.slice(0, 2)}\u200d${name.slice(2)}`,
    (name) => name.replace("i", "ı"),
    (name) => name.replace("s", "ſ"),
  );
  const names = PROTECTED.map(({ name }) => name.replace("*", "x"));
  fc.assert(
    fc.property(fc.constantFrom(...names), change, (name, spelt) => {
      notMilder(`src/${spelt(name)}/x`, `src/${name}/x`, "write");
      notMilder(spelt(name), name, "write");
    }),
  );
});

test("read-only is never milder than workspace-write, nor that than danger-full-access", () => {
  fc.assert(
    fc.property(path, op, (given, how) => {
      const [readOnly, workspace, danger] = MODES.map((each) =>
        rank(given, how, { ...CONTEXT, mode: each }),
      ) as [number, number, number];
      assert.ok(readOnly >= workspace && workspace >= danger);
      assert.ok(workspace < 2 || danger === 2);
    }),
  );
});

test("a fact about links never makes a decision milder", () => {
  fc.assert(
    fc.property(path, path, op, (given, end, how) => {
      const real = end.startsWith("/") ? end : `/home/dev/project/${end}`;
      const links = (asked: string): string =>
        asked === CONTEXT.workspace || asked === CONTEXT.home ? asked : real;
      const linked = rank(given, how, { ...CONTEXT, links });
      assert.ok(linked >= rank(given, how), `${given} → ${real}`);
    }),
  );
});

test("everything below a path that refuses writes refuses writes", () => {
  fc.assert(
    fc.property(path, fc.constantFrom("x", "y/z"), (given, more) => {
      fc.pre(!/(?:^|\/)\.\.?$/.test(given));
      const { protected: why, trap } = placeOf(given, "write", CONTEXT);
      fc.pre(why !== null || trap !== null);
      const below = placeOf(`${given}/${more}`, "write", CONTEXT);
      assert.ok(below.protected !== null || below.trap !== null, given);
    }),
  );
});

test("any text gives a decision with a reason", () => {
  fc.assert(
    fc.property(anyText(), op, mode, (given, how, each) => {
      const decided = decidePath(given, how, { ...CONTEXT, mode: each });
      assert.ok(decided.rules.length > 0);
      assert.ok(decided.rules.every(({ span }) => span[0] === 0 && span[1] === given.length));
    }),
  );
});

test("64 KiB of any text is decided", () => {
  const parts = [
    "a",
    "/",
    "../",
    "a/",
    ".",
    ". /",
    "/proc/self/cwd",
    "/proc/1/task/2",
    "~",
    "ﬁ/",
    ":",
    ".a.env",
    "*",
    "\ud800",
  ];
  for (const part of [...parts, "::$INDEX_ALLOCATION", ".git\u200c/"]) {
    const text = part.repeat(65_536 / part.length);
    for (const how of ["read", "write"] as const) {
      assert.equal(decidePath(text, how, CONTEXT).decision, "deny");
      assert.ok(placeOf(`/${text}`, how, CONTEXT).path.startsWith("/"));
      placeOf(text, how, CONTEXT);
    }
  }
});
