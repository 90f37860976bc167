import { readdir } from "node:fs/promises";
import path from "node:path";
import { plural } from "../../core/wording.ts";
import { headText } from "../../platform/safe-files.ts";
import { projectCheck } from "../run/project-check.ts";
import type { Settings } from "../../config/settings-schema.ts";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { type FileDiff, hunksOf, lineCounts, splitLines } from "../../core/text/line-diff.ts";
import type { Session, SessionStore } from "../../core/session.ts";
import { checkpointsFor } from "../sessions/checkpoint-access.ts";
import type { Host } from "../host.ts";
import { judgedPath } from "./policy-context.ts";
import { newSession } from "../sessions/session-access.ts";

/** Facts about a project that need no model: from names, and the heads of plain files. */
interface ProjectFacts {
  /** The language with the most files first. */
  readonly languages: readonly { readonly name: string; readonly files: number }[];
  readonly commands: readonly { readonly what: string; readonly command: string }[];
  readonly folders: readonly {
    readonly name: string;
    readonly files: number;
    readonly language: string | null;
  }[];
}

const MAX_ENTRIES = 20_000;
const MAX_DEPTH = 6;
const MAX_LANGUAGES = 5;
const MAX_FOLDERS = 15;
const MAX_BYTES = 256 * 1024;

const LANGUAGES: Readonly<Record<string, string>> = {
  ts: "TypeScript",
  tsx: "TypeScript",
  mts: "TypeScript",
  cts: "TypeScript",
  js: "JavaScript",
  jsx: "JavaScript",
  mjs: "JavaScript",
  cjs: "JavaScript",
  py: "Python",
  rs: "Rust",
  go: "Go",
  java: "Java",
  kt: "Kotlin",
  scala: "Scala",
  rb: "Ruby",
  php: "PHP",
  cs: "C#",
  c: "C",
  h: "C",
  cc: "C++",
  cpp: "C++",
  hpp: "C++",
  swift: "Swift",
  ex: "Elixir",
  exs: "Elixir",
  hs: "Haskell",
  lua: "Lua",
  sh: "Shell",
  sql: "SQL",
};

/** Folders that tools make or install. */
const SKIPPED = new Set(
  "node_modules dist build target out coverage vendor venv __pycache__ obj third_party".split(" "),
);
/** Names that may appear in a text that models follow. */
const PLAIN = /^[\w@+-][\w.@+-]{0,59}$/;

export async function projectFacts(workspace: string): Promise<ProjectFacts> {
  const files = await filesBelow(workspace);
  const top = new Set(files.filter((file) => !file.includes("/")));
  return {
    languages: languagesOf(files).slice(0, MAX_LANGUAGES),
    commands: await commandsOf(workspace, top),
    folders: foldersOf(files),
  };
}

/** Does not follow links or enter hidden folders. */
async function filesBelow(workspace: string): Promise<readonly string[]> {
  const files: string[] = [];
  const open: (readonly [folder: string, depth: number])[] = [["", 0]];
  for (let next = open.shift(); next !== undefined && files.length < MAX_ENTRIES; next = open.shift()) {
    const [folder, depth] = next;
    const entries = await readdir(path.join(workspace, folder), { withFileTypes: true }).catch(() => []);
    for (const entry of entries.toSorted((one, other) => (one.name < other.name ? -1 : 1))) {
      const at = folder === "" ? entry.name : `${folder}/${entry.name}`;
      if (entry.isFile()) files.push(at);
      const enters = entry.isDirectory() && !entry.name.startsWith(".") && !SKIPPED.has(entry.name);
      if (enters && depth < MAX_DEPTH) open.push([at, depth + 1]);
    }
  }
  return files.slice(0, MAX_ENTRIES);
}

function languagesOf(files: readonly string[]): ProjectFacts["languages"] {
  const counts = new Map<string, number>();
  for (const file of files) {
    const language = LANGUAGES[path.extname(file).slice(1).toLowerCase()];
    if (language !== undefined) counts.set(language, (counts.get(language) ?? 0) + 1);
  }
  return [...counts]
    .map(([name, count]) => ({ name, files: count }))
    .toSorted((one, other) => other.files - one.files);
}

function foldersOf(files: readonly string[]): ProjectFacts["folders"] {
  const names = [
    ...new Set(files.flatMap((file) => (file.includes("/") ? [file.slice(0, file.indexOf("/"))] : []))),
  ];
  return names
    .filter((name) => PLAIN.test(name))
    .slice(0, MAX_FOLDERS)
    .map((name) => {
      const within = files.filter((file) => file.startsWith(`${name}/`));
      return { name, files: within.length, language: languagesOf(within)[0]?.name ?? null };
    });
}

/** Scripts with names that say what they do; others are left out. */
const SCRIPTS = ["build", "test", "lint", "format", "typecheck", "check", "start", "dev"];

async function commandsOf(workspace: string, top: ReadonlySet<string>): Promise<ProjectFacts["commands"]> {
  const read = (name: string): Promise<string> =>
    top.has(name) ? headText(path.join(workspace, name), MAX_BYTES) : Promise.resolve("");
  const [manifest, makefile, python, test] = await Promise.all([
    read("package.json"),
    read("Makefile"),
    read("pyproject.toml"),
    projectCheck(workspace),
  ]);
  const found = [
    ...nodeCommands(manifest, top),
    ...makeCommands(makefile),
    ...(top.has("Cargo.toml")
      ? rows({ build: "cargo build", test: "cargo test", lint: "cargo clippy" })
      : []),
    ...(top.has("go.mod")
      ? rows({ build: "go build ./...", test: "go test ./...", lint: "go vet ./..." })
      : []),
    ...(top.has("pom.xml") ? rows({ build: "mvn -q package", test: "mvn -q test" }) : []),
    ...(top.has("gradlew") ? rows({ build: "./gradlew build", test: "./gradlew test" }) : []),
    ...(/^\[tool\.ruff\b/m.test(python) ? rows({ lint: "ruff check ." }) : []),
    ...(/^\[tool\.mypy\b/m.test(python) ? rows({ typecheck: "mypy ." }) : []),
  ];
  const tests = found.some(({ what }) => what === "test") || test === undefined ? [] : rows({ test });
  return [...found, ...tests].filter(
    ({ what }, at, all) => all.findIndex((each) => each.what === what) === at,
  );
}

const rows = (commands: Readonly<Record<string, string>>): ProjectFacts["commands"] =>
  Object.entries(commands).map(([what, command]) => ({ what, command }));

function nodeCommands(text: string, top: ReadonlySet<string>): ProjectFacts["commands"] {
  const manager = top.has("pnpm-lock.yaml") ? "pnpm" : top.has("yarn.lock") ? "yarn" : "npm";
  let scripts: Readonly<Record<string, unknown>> = {};
  try {
    scripts = (JSON.parse(text) as { readonly scripts?: typeof scripts }).scripts ?? {};
  } catch {
    return [];
  }
  return SCRIPTS.flatMap((what) => {
    const script = scripts[what];
    if (typeof script !== "string" || /no test specified/.test(script)) return [];
    return [{ what, command: what === "test" ? `${manager} test` : `${manager} run ${what}` }];
  });
}

const makeCommands = (text: string): ProjectFacts["commands"] =>
  SCRIPTS.flatMap((what) =>
    new RegExp(`^${what}[ \\t]*:(?!=)`, "m").test(text) ? [{ what, command: `make ${what}` }] : [],
  );

/** A short AGENTS.md with these facts. */
export function factsText({ languages, commands, folders }: ProjectFacts): string {
  const spoken = languages.map(({ name, files }) => `${name} (${plural(files, "file")})`).join(", ");
  return [
    "# Notes for whoever works here",
    "",
    ...(spoken === "" ? [] : [`Languages: ${spoken}.`, ""]),
    ...(commands.length === 0
      ? []
      : ["## Commands", "", ...commands.map(({ what, command }) => `- ${what}: \`${command}\``), ""]),
    ...(folders.length === 0
      ? []
      : [
          "## Layout",
          "",
          ...folders.map(
            ({ name, files, language }) =>
              `- \`${name}/\`: ${plural(files, "file")}${language === null ? "" : `, mostly ${language}`}`,
          ),
          "",
        ]),
  ].join("\n");
}

/** The file that describes a project: how it is shown before it is replaced, written, and restored. */
export const FACTS_FILE = "AGENTS.md";

/** With more changed lines, the whole file is shown as replaced. */
const MAX_CHANGED = 2000;
const CONTEXT_LINES = 3;

/** The difference between the existing file and its replacement. */
export async function factsDiff(before: string, after: string): Promise<FileDiff> {
  const { lineChanges } = await import("../../sessions/checkpoints/checkpoint-diff.ts");
  const sides = { before: splitLines(before), after: splitLines(after) };
  const changes = lineChanges(sides.before, sides.after, MAX_CHANGED);
  return {
    path: FACTS_FILE,
    change: "modified",
    was: null,
    before: side(before),
    after: side(after),
    lines: { ...lineCounts(changes), hunks: hunksOf(changes, sides, CONTEXT_LINES) },
  };
}

const side = (text: string) => ({ kind: "file" as const, mode: 0o644, size: Buffer.byteLength(text) });

interface FactsPlace {
  readonly host: Host;
  readonly settings: Settings;
  readonly workspace: string;
  readonly store: SessionStore;
  /** The session that the write belongs to; undefined if nothing has been said yet. */
  readonly session: Session | undefined;
  readonly warn: (text: string) => void;
}

/**
 * Writes the file as a model's call would be written: judged first, in a box over the workspace, with its states before
 * and after kept. Returns what to type to restore the previous file.
 */
export async function writeFacts(place: FactsPlace, text: string, signal: AbortSignal): Promise<string> {
  const { host, settings, workspace, store, warn } = place;
  await refuseUnlessAllowed(place);
  // A session with a layer keeps its changes there, but this write goes to the folder itself.
  const own = settings.isolation === "bind" ? place.session : undefined;
  const session = own ?? newSession(store, settings, { workspace, prompt: "/init" });
  const before = session.steps.all().at(-1)?.step ?? 0;
  const bound: Settings = { ...settings, isolation: "bind" };
  await using checkpoints = await checkpointsFor({
    host,
    workspace,
    session,
    store,
    settings: bound,
    resumed: own !== undefined,
    emit: (event) => void (event.type === "notice" && warn(event.text)),
  });
  await checkpoints.around({ call: "/init", turn: 0, lasting: false }, () => saveFacts(place, text, signal));
  return `harness undo ${session.id}${before === 0 ? "" : ` --to ${before}`}`;
}

async function refuseUnlessAllowed({ host, settings, workspace }: FactsPlace): Promise<void> {
  const { mode } = settings;
  const judged = await judgedPath(host, FACTS_FILE, { workspace, home: host.places.home, mode, op: "write" });
  if (judged.decision === "allow") return;
  const why = judged.rules[0]?.reason ?? "no rule allows it";
  throw new HarnessError(EXIT.refused, `${FACTS_FILE} is not written: ${why}`, "/mode workspace-write");
}

async function saveFacts(place: FactsPlace, text: string, signal: AbortSignal): Promise<void> {
  const { writingBox } = await import("../boxes/box-access.ts");
  await using box = await writingBox(place, signal);
  const written = await box.write(FACTS_FILE, new TextEncoder().encode(text));
  if (written.kind === "ok") return;
  const message = `${FACTS_FILE} is not written: ${written.reason}`;
  throw new HarnessError(EXIT.failed, message, `ls -l ${FACTS_FILE}`);
}
