/** Environments and boxes, in tables and one by one. */
import type { ListedBox } from "../core/ports.ts";
import { byEcosystem, type Installed, installedWords } from "../core/run-record.ts";
import { visible, visibleLine } from "../core/visible.ts";
import { formatSize, firstOf } from "../core/wording.ts";
import { alignedRows } from "./tty/columns.ts";
import { type Output, styleText } from "./tty/output.ts";

interface Listed {
  readonly id: string;
  readonly workspace: string;
  readonly name: string;
  readonly state: string;
  readonly made: string | null;
  readonly bytes: number | null;
  readonly system_bytes: number | null;
  readonly pushed: string | null;
}

const ENVIRONMENT_HEAD = ["ID", "STATE", "AGE", "SIZE", "SYSTEM", "NAME", "REGISTRY", "WORKSPACE"];

/** One line per environment. */
export function environmentTable(all: readonly Listed[], stream: Output, now = Date.now()): string {
  const rows = all.map(({ id, state, made, bytes, system_bytes, name, pushed, workspace }) => [
    id,
    state,
    made === null ? "-" : ageOf(now - Date.parse(made)),
    size(bytes),
    size(system_bytes),
    visibleLine(name === "" ? "-" : name),
    visibleLine(pushed === null ? "-" : shortDigest(pushed)),
    visibleLine(workspace),
  ]);
  return tableText(ENVIRONMENT_HEAD, rows, stream);
}

const size = (bytes: number | null): string => (bytes === null ? "-" : formatSize(bytes));

/** The full digest is in --json and in `env show`. */
const shortDigest = (image: string): string => image.replace(/(@sha256:[0-9a-f]{12})[0-9a-f]+$/, "$1");

const MAX_KEPT = 20;

/** The environments that a teardown leaves, and the command that removes them. */
export function keptEnvironments(all: readonly Listed[]): string {
  const many = all.length === 1 ? "1 environment stays" : `${all.length} environments stay`;
  return [
    `${many}: harness env rm --all`,
    ...all
      .slice(0, MAX_KEPT)
      .map(({ id, bytes, system_bytes, workspace }) =>
        `  ${id}  ${size(bytes)}, image ${size(system_bytes)}  ${visibleLine(workspace)}`.trimEnd(),
      ),
    ...(all.length > MAX_KEPT ? [`  and ${all.length - MAX_KEPT} more: harness env list`] : []),
    "",
  ].join("\n");
}

interface RecipeLine {
  readonly what: string;
  readonly from: string;
}

interface ShownRecipe {
  readonly kind: string;
  readonly file: string;
  readonly taken: readonly RecipeLine[];
  readonly notTaken: readonly RecipeLine[];
  readonly ignored: readonly string[];
}

const ORIGINS: Readonly<Record<string, string>> = {
  named: "your recipe",
  project: "the project's trusted recipe",
  devcontainer: "the project's trusted devcontainer",
  detected: "found in the project's files",
};

/** The ingredients of an environment, and the file that each line came from. */
export function recipeLines({ kind, file, taken, notTaken, ignored }: ShownRecipe, stream: Output): string {
  const title = `${ORIGINS[kind] ?? kind}${file === "" ? "" : `: ${visibleLine(file)}`}`;
  const rows = taken.map(({ what, from }) => [visible(what), visibleLine(from)] as const);
  const columns = stream.columns || Infinity;
  const room = columns - "    ".length - Math.max(0, ...rows.map(([, from]) => from.length));
  const width = Math.min(60, Math.max(20, room), Math.max(0, ...rows.map(([what]) => what.length)));
  return [
    styleText("bold", title, { stream }),
    ...(rows.length === 0 ? ["  nothing: the sandbox image as it is"] : []),
    ...rows.map(([what, from]) => {
      const start = `  ${what.padEnd(width)}  `;
      // A command is shown whole; its file goes below it if there is no room beside it.
      const isBelow = what.includes("\n") || start.length + from.length > columns;
      const begins = isBelow ? `  ${what.replaceAll("\n", "\n  ")}\n      ` : start;
      return `${begins}${styleText("dim", from, { stream })}`;
    }),
    ...(notTaken.length === 0 ? [] : [styleText("bold", "not used", { stream })]),
    ...notTaken.map(
      ({ what, from }) => `  ${visibleLine(what)}  ${styleText("dim", visibleLine(from), { stream })}`,
    ),
    ...ignored.map((line) => `${styleText("yellow", "note", { stream })} ${visibleLine(line)}`),
    "",
  ].join("\n");
}

interface Step {
  readonly at: number;
  readonly of: number;
  readonly title: string;
}

/** One line per step; also fits a log, where redrawing is useless. */
export function stepLine({ at, of, title }: Step, stream: Output): string {
  return `${styleText("dim", `${at}/${of}`, { stream })} ${visibleLine(title)}\n`;
}

interface ShownBuild {
  readonly id: string;
  readonly versions: readonly string[];
  readonly seconds: number;
  readonly volumes: readonly { readonly target: string }[];
  readonly installed: Installed | null;
}

interface ShownPush {
  readonly how: "kept" | "pushed";
  readonly image: string;
  readonly moved: number;
}

interface BuildEnding {
  readonly lost: readonly string[];
  /** The command that makes the lost files in the workspace. */
  readonly again?: string | undefined;
  readonly pushed: ShownPush | null;
}

const MAX_NAMED = 5;

/** The end of a build: what was made, where it was sent, and what is not in it. */
export function builtLines(
  record: ShownBuild,
  how: "kept" | "built",
  { lost, again, pushed }: BuildEnding,
): string {
  return [
    how === "kept" ? `${record.id}  already complete` : `${record.id}  built in ${record.seconds} s`,
    ...record.versions.map((line) => `  ${visibleLine(line)}`),
    ...countLines(record),
    ...(pushed === null ? [] : [visibleLine(pushedLine(pushed))]),
    ...(lost.length === 0
      ? []
      : [
          `  not kept, because it is outside the environment's folders: ${firstOf(lost, MAX_NAMED, visibleLine)}`,
        ]),
    ...(again === undefined ? [] : [`  if the tests need these files: ${visibleLine(again)}`]),
    "",
  ].join("\n");
}

const countLines = ({ installed }: Pick<ShownBuild, "installed">): readonly string[] =>
  installed === null || installed.total === 0
    ? []
    : [
        `  ${installedWords(installed)}: ${visibleLine(byEcosystem(installed.packages))}; harness env show lists them`,
      ];

function pushedLine({ how, image, moved }: ShownPush): string {
  const layers = moved === 1 ? "1 layer was sent" : `${moved} layers were sent`;
  return how === "kept" ? `  in the registry: ${image}` : `  pushed: ${image} (${layers})`;
}

const MAX_LISTED = 100;

/** When it was built, its present state, and its contents. */
export function standingLines(
  record: { readonly made: string; readonly installed: Installed | null } | undefined,
  { note, pushed }: { readonly note?: string | undefined; readonly pushed?: string | undefined } = {},
): string {
  if (record === undefined) return "not built yet: harness env build\n";
  const { made, installed } = record;
  const packages = installed?.packages ?? [];
  return [
    `built ${made}`,
    ...(pushed === undefined ? [] : [`in the registry: ${visibleLine(pushed)}`]),
    ...(note === undefined ? [] : [visibleLine(note)]),
    ...(installed === null ? [] : [installedWords(installed)]),
    ...packages
      .slice(0, MAX_LISTED)
      .map(({ ecosystem, name, version }) => `  ${visibleLine(`${ecosystem} ${name} ${version}`)}`),
    ...(packages.length > MAX_LISTED ? [`  and ${packages.length - MAX_LISTED} more: --json`] : []),
    "",
  ].join("\n");
}

interface TableContext {
  readonly now: number;
  /** Bytes in use by id, where known. */
  readonly memory: ReadonlyMap<string, number>;
}

const BOX_HEAD = ["ID", "MODE", "ISOLATION", "STATE", "AGE", "MEMORY", "OWNER", "WORKSPACE"];

/** One line per box. The workspace comes last because only its length varies without limit. */
export function boxTable(boxes: readonly ListedBox[], seen: TableContext, stream: Output): string {
  return tableText(
    BOX_HEAD,
    boxes.map((box) => boxCells(box, seen)),
    stream,
  );
}

function tableText(heads: readonly string[], rows: readonly (readonly string[])[], stream: Output): string {
  const [head = "", ...lines] = alignedRows([heads, ...rows]);
  return [styleText("bold", head, { stream }), ...lines, ""].join("\n");
}

const boxCells = (box: ListedBox, { now, memory }: TableContext): readonly string[] => [
  box.id.slice(0, 12),
  box.mode ?? "-",
  oneLine(box.isolation ?? "-"),
  box.parked === null ? box.state : "parked",
  ageOf(now - Date.parse(box.created)),
  memory.has(box.id) ? formatSize(memory.get(box.id) ?? 0) : "-",
  box.parked === null ? ownerCell(box.owner) : waitsCell(box.parked, now),
  oneLine(box.workspace ?? "-"),
];

function ownerCell(owner: ListedBox["owner"]): string {
  if (owner === null) return "-";
  return owner.alive ? String(owner.pid) : `${owner.pid} (gone)`;
}

const waitsCell = ({ session, until }: NonNullable<ListedBox["parked"]>, now: number): string =>
  `${session}, for ${ageOf(Date.parse(until) - now)}`;

/** An age in the largest unit that fits; never negative, even if the clock was set back. */
export function ageOf(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86_400)} days`;
}

/** A folder's name may contain anything, including terminal sequences and direction marks. */
const oneLine = (text: string): string =>
  text.replaceAll(
    /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/gu,
    (mark) => `\\u{${mark.codePointAt(0)?.toString(16) ?? ""}}`,
  );
