import assert from "node:assert/strict";
import test from "node:test";
import { emptyHouse, lint, type Planted } from "./plant.ts";

const repeat = (count: number, line: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => line(index)).join("\n");

const constants = (count: number): string => repeat(count, (index) => `export const a${index} = ${index};`);
const branches = (count: number): string =>
  `export function pick(n: number): number {\n${repeat(count, (index) => `  if (n === ${index}) return ${index * 3};`)}\n  return -1;\n}\n`;
const longFunction = (lines: number): string =>
  `export function long(log: (n: number) => void): void {\n${repeat(lines - 2, (index) => `  log(${index});`)}\n}\n`;
const parameters = (count: number): string =>
  `export const sum = (${repeat(count, (index) => `a${index}: number,`)}): number => ${repeat(count, (index) => `a${index}`).replaceAll("\n", " + ")};\n`;
const switching = (arms: readonly string[]): string =>
  `export function colour(of: "red" | "green"): number {\n  switch (of) {\n${arms.join("\n")}\n  }\n  return 0;\n}\n`;

const short = (lines: number): string =>
  `export function used(): number {\n${"  // salt\n".repeat(lines - 3)}  return 1;\n}\n`;
/** With as many lines as a file of its own has. */
const long = (text: string): string => text + "// salt\n".repeat(40);
const uses = (source: string): string =>
  `import { used } from "${source}";\nexport const taken = String(used);\n`;

const UNTIDY = "house(tidy): name the file for what it owns";
const MUTABLE = "house(tidy): no mutable state at module level";
const BARREL = "house(tidy): the only barrel is src/tools/index.ts";
const SCREEN =
  "house(screen): only src/render/tty/output.ts writes to stdout, stderr or a terminal; use its stdout and stderr";
const FOLDERS =
  "house(folders): only src/platform/folders.ts makes folders with those above them: mkdir with `recursive` may never end";
const RAW = "house(raw): a raw template holds ASCII only: put other letters into it from a plain string";
const work = "const work = (): Promise<number> => Promise.resolve(1);\n";

/** Each rule with a file that breaks it and one, just inside, that does not. */
const CASES: readonly Planted[] = [
  {
    name: "a cycle of two files in one folder",
    file: "src/core/hen.ts",
    text: long('import { egg } from "./egg.ts";\nexport const hen = (): number => egg() + 1;\n'),
    red: ["import(no-cycle)"],
  },
  {
    name: "the other file of the cycle",
    file: "src/core/egg.ts",
    text: long('import { hen } from "./hen.ts";\nexport const egg = (): number => hen() + 1;\n'),
    red: ["import(no-cycle)"],
  },
  {
    name: "a cycle of types alone",
    file: "src/core/rooster.ts",
    text: long('import type { Pullet } from "./pullet.ts";\nexport type Rooster = Pullet | "crows";\n'),
    red: ["import(no-cycle)"],
  },
  {
    name: "the other file of the cycle of types",
    file: "src/core/pullet.ts",
    text: long(
      'import type { Rooster } from "./rooster.ts";\nexport interface Pullet {\n  readonly near?: Rooster;\n}\n',
    ),
    red: ["import(no-cycle)"],
  },
  {
    name: "a chain of files",
    file: "src/core/chick.ts",
    text: 'import { straw } from "./straw.ts";\nexport const chick = straw + 1;\n',
    red: [],
  },
  { name: "the end of the chain", file: "src/core/straw.ts", text: "export const straw = 1;\n", red: [] },
  {
    name: "a floating promise",
    file: "src/core/floating.ts",
    text: `${work}export function go(): void {\n  work();\n}\n`,
    red: ["typescript(no-floating-promises)"],
  },
  {
    name: "an awaited promise",
    file: "src/core/awaited.ts",
    text: `${work}export async function go(): Promise<void> {\n  await work();\n}\n`,
    red: [],
  },
  {
    name: "a switch without an arm for each member",
    file: "src/core/partial.ts",
    text: switching(['    case "red":\n      return 1;']),
    red: ["typescript(switch-exhaustiveness-check)"],
  },
  {
    name: "a switch with an arm for each member",
    file: "src/core/whole.ts",
    text: switching(['    case "red":\n      return 1;', '    case "green":\n      return 2;']),
    red: [],
  },
  {
    name: "a default export",
    file: "src/core/default.ts",
    text: "export default 1;\n",
    red: ["import(no-default-export)"],
  },
  {
    name: "a default export by name",
    file: "src/core/renamed.ts",
    text: "const one = 1;\nexport { one as default };\n",
    red: ["import(no-default-export)"],
  },
  { name: "a named export", file: "src/core/named.ts", text: "export const one = 1;\n", red: [] },
  {
    name: "401 lines",
    file: "src/core/text/line-diff.ts",
    text: `${constants(401)}\n`,
    red: ["eslint(max-lines)"],
  },
  {
    name: "400 lines, blanks and comments apart",
    file: "src/core/lines-twin.ts",
    text: `${constants(400)}\n\n/*\n${"more words\n".repeat(20)}*/\n\n// end\n`,
    red: [],
  },
  {
    name: "a function of 81 lines",
    file: "src/core/long.ts",
    text: longFunction(81),
    red: ["eslint(max-lines-per-function)"],
  },
  { name: "a function of 80 lines", file: "src/core/long-twin.ts", text: longFunction(80), red: [] },
  { name: "16 paths", file: "src/core/paths.ts", text: branches(15), red: ["eslint(complexity)"] },
  { name: "15 paths", file: "src/core/paths-twin.ts", text: branches(14), red: [] },
  { name: "6 parameters", file: "src/core/six.ts", text: parameters(6), red: ["eslint(max-params)"] },
  { name: "5 parameters", file: "src/core/five.ts", text: parameters(5), red: [] },
  {
    name: "a module-level let",
    file: "src/core/let.ts",
    text: "let count = 0;\nexport const next = (): number => (count += 1);\n",
    red: [MUTABLE],
  },
  {
    name: "an exported let",
    file: "src/core/exported-let.ts",
    text: "export let count = 0;\nexport const next = (): number => (count += 1);\n",
    red: [MUTABLE],
  },
  {
    name: "a let inside a function",
    file: "src/core/inner-let.ts",
    text: "export function next(from: number): number {\n  let count = from;\n  count += 1;\n  return count;\n}\n",
    red: [],
  },
  { name: "utils.ts", file: "src/core/utils.ts", text: "export const one = 1;\n", red: [UNTIDY] },
  { name: "util/pad.ts", file: "src/core/util/pad.ts", text: "export const one = 1;\n", red: [UNTIDY] },
  { name: "helpers.ts", file: "src/core/helpers.ts", text: "export const one = 1;\n", red: [UNTIDY] },
  { name: "common/pad.ts", file: "src/core/common/pad.ts", text: "export const one = 1;\n", red: [UNTIDY] },
  { name: "misc.ts", file: "sandbox/misc.ts", text: "export const one = 1;\n", red: [UNTIDY] },
  { name: "pad.ts", file: "src/core/pad.ts", text: "export const one = 1;\n", red: [] },
  {
    name: "a barrel in another folder",
    file: "src/core/index.ts",
    text: 'export { straw } from "./straw.ts";\n',
    red: [BARREL],
  },
  {
    name: "a barrel below tools/",
    file: "src/tools/files/index.ts",
    text: 'export { one } from "../one.ts";\n',
    red: [BARREL],
  },
  {
    name: "the one barrel",
    file: "src/tools/index.ts",
    text: 'export { one } from "./one.ts";\n',
    red: [],
  },
  { name: "what the barrels export", file: "src/tools/one.ts", text: "export const one = 1;\n", red: [] },
  {
    name: "an any",
    file: "src/core/any.ts",
    text: "export const loose = (value: any): boolean => value === 1;\n",
    red: ["typescript(no-explicit-any)"],
  },
  {
    name: "an unknown",
    file: "src/core/unknown.ts",
    text: "export const strict = (value: unknown): boolean => value === 1;\n",
    red: [],
  },
  {
    name: "a type imported as a value",
    file: "src/core/type-as-value.ts",
    text: 'import { Straw } from "./straw-type.ts";\nexport type Mine = Straw | undefined;\n',
    red: ["typescript(consistent-type-imports)"],
  },
  {
    name: "a type imported as a type",
    file: "src/core/type-as-type.ts",
    text: 'import type { Straw } from "./straw-type.ts";\nexport type Mine = Straw | undefined;\n',
    red: [],
  },
  {
    name: "a type",
    file: "src/core/straw-type.ts",
    text: "export interface Straw {\n  readonly length: number;\n}\n",
    red: [],
  },
  {
    name: "a write to stdout",
    file: "src/cli/direct.ts",
    text: 'export const say = (): boolean => process.stdout.write("x");\n',
    red: [SCREEN],
  },
  {
    name: "a write to stderr, its name in brackets",
    file: "src/models/direct.ts",
    text: 'export const say = (): boolean => process["stderr"].write("x");\n',
    red: [SCREEN],
  },
  {
    name: "stdout handed on",
    file: "src/docker/handed.ts",
    text: "export const out = (): object => globalThis.process.stdout;\n",
    red: [SCREEN],
  },
  {
    name: "stdout taken out of process",
    file: "src/cli/taken.ts",
    text: 'export function say(): boolean {\n  const { stdout: out } = process;\n  return out.write("x");\n}\n',
    red: [SCREEN],
  },
  {
    name: "all of process but something",
    file: "src/cli/rest.ts",
    text: "export function rest(): object {\n  const { pid: _, ...more } = process;\n  return more;\n}\n",
    red: [SCREEN],
  },
  {
    name: "the console",
    file: "src/search/console.ts",
    text: 'export const say = (): void => console.error("x");\n',
    red: [SCREEN],
  },
  {
    name: "a write to descriptor 2",
    file: "src/sessions/descriptor.ts",
    text: 'import { writeSync } from "node:fs";\nexport const say = (): number => writeSync(2, "x");\n',
    red: [SCREEN],
  },
  {
    name: "a stream over descriptor 1",
    file: "src/sessions/stream.ts",
    text: 'import { createWriteStream } from "node:fs";\nexport const out = (): object => createWriteStream("", { fd: 1 });\n',
    red: [SCREEN],
  },
  {
    name: "the terminal of the process by its name",
    file: "src/docker/tty.ts",
    text: 'import { openSync } from "node:fs";\nexport const open = (): number => openSync("/dev/tty", "w");\n',
    red: [SCREEN],
  },
  {
    name: "stdout by its name",
    file: "src/docker/by-name.ts",
    text: 'import { writeFileSync } from "node:fs";\nexport const say = (): void => writeFileSync(`/proc/self/fd/1`, "x");\n',
    red: [SCREEN],
  },
  {
    name: "a child that writes to our terminal",
    file: "src/docker/child.ts",
    text: 'import { spawn } from "node:child_process";\nexport const go = (): object => spawn("x", { stdio: ["ignore", "inherit", "pipe"] });\n',
    red: [SCREEN],
  },
  {
    name: "a command's own words",
    file: "src/cli/commands/wordy.ts",
    text: 'import { Command } from "@oclif/core";\nexport class Wordy extends Command {\n  run(): Promise<void> {\n    this.log("x");\n    return Promise.resolve();\n  }\n}\n',
    red: [SCREEN],
  },
  {
    name: "the printer of oclif",
    file: "src/cli/printer.ts",
    text: 'import { ux } from "@oclif/core";\nexport const say = (): void => void ux;\n',
    red: [SCREEN],
  },
  {
    name: "colours of node",
    file: "src/render/tty/colours.ts",
    text: 'import { styleText } from "node:util";\nexport const red = (text: string): string => styleText("red", text);\n',
    red: [SCREEN],
  },
  {
    name: "the one writer",
    file: "src/render/tty/output.ts",
    text: 'export const say = (): boolean => process.stdout.write("x");\n',
    red: [],
  },
  {
    name: "other descriptors, names and inputs",
    file: "src/docker/others.ts",
    text: 'import { openSync, writeSync } from "node:fs";\nexport const NAMES = new Set(["/dev/tty", "/dev/stdout"]);\nexport const say = (fd: number): number => writeSync(fd, "x") + openSync("/dev/null", "w");\nexport const typed = (): boolean => process.stdin.isTTY;\n',
    red: [],
  },
  {
    name: "nested folders made with Node's own function",
    file: "src/sessions/row.ts",
    text: 'import { mkdirSync } from "node:fs";\nexport const row = (at: string): unknown => mkdirSync(at, { recursive: true, mode: 0o700 });\n',
    red: [FOLDERS],
  },
  {
    name: "nested folders made with a promise, and options from elsewhere",
    file: "src/sessions/row-later.ts",
    text: 'import fs from "node:fs/promises";\nexport const row = (at: string, options: { recursive: boolean }): Promise<unknown> => fs.mkdir(at, options);\n',
    red: [FOLDERS],
  },
  {
    name: "one folder",
    file: "src/sessions/one.ts",
    text: 'import { mkdirSync } from "node:fs";\nexport const one = (at: string): unknown => mkdirSync(at, { mode: 0o700 });\nexport const other = (at: string): unknown => mkdirSync(at, { recursive: false });\n',
    red: [],
  },
  {
    name: "the one function that makes nested folders",
    file: "src/platform/folders.ts",
    text: 'import { mkdirSync } from "node:fs";\nexport const row = (at: string): unknown => mkdirSync(at, { recursive: true });\n',
    red: [],
  },
  {
    name: "a non-ASCII letter in a raw template",
    file: "src/core/naive.ts",
    text: "export const said = (name: string): string => String.raw`${name}\\n…`;\n",
    red: [RAW],
  },
  {
    name: "a non-ASCII letter in another tagged template",
    file: "src/core/tagged.ts",
    text: "export const said = (tag: (text: readonly string[]) => string): string => tag`…`;\n",
    red: [],
  },
  {
    name: "a non-ASCII letter from a plain string",
    file: "src/core/plain.ts",
    text: 'const REST = "…";\nexport const said = (name: string): string => String.raw`${name}\\n${REST}`;\n',
    red: [],
  },
  {
    name: "a short file that one neighbour uses",
    file: "src/core/crumb.ts",
    text: short(39),
    red: [`house(fragments): 39 lines that only src/core/loaf.ts uses belong into that file`],
  },
  { name: "its neighbour", file: "src/core/loaf.ts", text: uses("./crumb.ts"), red: [] },
  { name: "a file of 40 lines that one neighbour uses", file: "src/core/slice.ts", text: short(40), red: [] },
  { name: "the neighbour of that", file: "src/core/slicer.ts", text: uses("./slice.ts"), red: [] },
  { name: "a short file that two neighbours use", file: "src/core/salt.ts", text: short(9), red: [] },
  { name: "one of the two neighbours", file: "src/core/soup.ts", text: uses("./salt.ts"), red: [] },
  { name: "the other of the two neighbours", file: "src/core/stew.ts", text: uses("./salt.ts"), red: [] },
  { name: "a short file that another folder uses", file: "src/core/spoon.ts", text: short(9), red: [] },
  { name: "a file of that folder", file: "src/policy/fork.ts", text: uses("../core/spoon.ts"), red: [] },
  { name: "a short file that is loaded later", file: "src/core/dessert.ts", text: short(9), red: [] },
  {
    name: "the file that loads it",
    file: "src/core/dinner.ts",
    text: 'export const later = (): Promise<unknown> => import("./dessert.ts");\n',
    red: [],
  },
  {
    name: "a short table of data",
    file: "src/core/menu.ts",
    text: 'export const used = ["soup", "stew"].length;\n',
    red: [],
  },
  { name: "the file that reads the table", file: "src/core/guest.ts", text: uses("./menu.ts"), red: [] },
  {
    name: "a short file that the list of tools imports",
    file: "src/tools/knife.ts",
    text: short(9),
    red: [],
  },
  { name: "the list of tools", file: "src/tools/index.ts", text: uses("./knife.ts"), red: [] },
  {
    name: "a switched-off rule that was not needed",
    file: "src/core/disabled.ts",
    text: "// oxlint-disable-next-line no-eval\nexport const one = 1;\n",
    red: ["Unused oxlint-disable directive (no problems were reported)."],
  },
];

await using place = await emptyHouse();
for (const { file, text } of CASES) await place.write(file, text);
const found = await lint(place);

for (const { name, file, red } of CASES)
  test(`${name}: ${red.length === 0 ? "green" : "red"}`, () => {
    assert.deepEqual(found.get(file) ?? [], red);
  });

test("nothing is red except what was planted", () => {
  const planted = CASES.filter(({ red }) => red.length > 0).map(({ file }) => file);
  assert.deepEqual([...found.keys()].toSorted(), planted.toSorted());
});
