import { isHarmless, pathIn } from "./git-settings.ts";
import type { Arg, Found, Use, Reader } from "./program-model.ts";
const BATCHES: ReadonlySet<string> = new Set(["--batch", "--batch-command"]);

/** With a batch, stdin names the objects to show, unless all are shown. */
const batchObjects = ({ options }: Use): readonly Found[] =>
  options.some(({ name }) => BATCHES.has(name)) && options.every(({ name }) => name !== "--batch-all-objects")
    ? [{ kind: "read", path: null }]
    : [];

/** `git archive` searches for `-o` and `--remote` first, even among the values of other options. */
const archiveOptions = (use: Use): readonly Found[] =>
  use.options.flatMap(({ value, span }) =>
    value !== null && value.span !== span && value.value.startsWith("-")
      ? [use.doubt("option.unknown", value)]
      : [],
  );
const has = ({ options }: Use, ...names: readonly string[]): boolean =>
  options.some(({ name }) => names.includes(name));
const change = (change: "local" | "lost" | "rewritten", { program }: Use): Found => ({
  kind: "repository",
  change,
  what: program,
});

/** Files that are overwritten: their uncommitted changes are lost. */
const overwriteEffects = (paths: readonly Arg[], use: Use): readonly Found[] => [
  change("lost", use),
  ...paths.flatMap((arg) => {
    const path = pathIn(arg.value);
    return path === null
      ? []
      : [{ kind: "write", path: use.place({ ...arg, value: path }), span: arg.span } as const];
  }),
];

/** Looks like a file, not like a branch: a leading dot, or a suffix. */
const FILE = /(?:^|\/)\.|\.[a-z]\w*$|\/$|[*?]/i;

function checkoutEffects(use: Use): readonly Found[] {
  const { args, operands } = use;
  const makes = has(use, "-b", "-B", "--orphan", "--detach", "-d", "-t", "--track");
  const dashes = args.find(({ kind, value }) => value === "--" && kind === "literal");
  const after = dashes === undefined ? [] : operands.filter(({ span }) => span[0] > dashes.span[0]);
  if (after.length > 0) return overwriteEffects(after, use);
  const [first] = operands;
  const files =
    has(use, "--ours", "--theirs", "-p", "--patch", "--pathspec-from-file", "-2", "-3") ||
    operands.length > 1 ||
    (first !== undefined && FILE.test(first.value));
  return files && !makes ? overwriteEffects(operands, use) : [change("local", use)];
}

/** Changes only the index, unless the work tree is named too. */
const restoreEffects = (use: Use): readonly Found[] =>
  has(use, "-S", "--staged") && !has(use, "-W", "--worktree")
    ? [change("local", use)]
    : overwriteEffects(use.operands, use);

/** Deletes only with `-f`; the deleted files are in no commit. */
function cleanEffects(use: Use): readonly Found[] {
  if (has(use, "-n", "--dry-run")) return [];
  return [change(has(use, "-f", "--force") ? "rewritten" : "lost", use)];
}

function removeEffects(use: Use): readonly Found[] {
  if (has(use, "-n", "--dry-run")) return [];
  if (has(use, "--cached")) return [change("local", use)];
  const recursive = has(use, "-r");
  const forced = has(use, "-f", "--force");
  const deleted = use.operands.map(
    (arg) => ({ kind: "delete", path: use.place(arg), recursive, forced, span: arg.span }) as const,
  );
  return [change(forced ? "lost" : "local", use), ...deleted];
}

function moveEffects(use: Use): readonly Found[] {
  if (has(use, "-n", "--dry-run")) return [];
  const sources = use.operands.slice(0, -1);
  const moved = sources.map(
    (arg) =>
      ({ kind: "delete", path: use.place(arg), recursive: false, forced: false, span: arg.span }) as const,
  );
  const targets = use.operands
    .slice(-1)
    .map((arg) => ({ kind: "write", path: use.place(arg), span: arg.span }) as const);
  return [change(has(use, "-f", "--force") ? "lost" : "local", use), ...moved, ...targets];
}

/** Options whose value may request signatures, which gpg then verifies. */
const SHAPES = new Set(["--format", "--pretty", "--group", "--sort"]);

/** `-c key=value` before a command, and formats that start gpg. */
function settingDoubts(use: Use): readonly Found[] {
  const { globals, options } = use;
  const settings = globals.filter(
    ({ name, value }) => name === "-c" && (value?.kind !== "literal" || !isHarmless(value.value)),
  );
  const formats = options.filter(
    ({ name, value }) =>
      SHAPES.has(name) &&
      value !== null &&
      (value.kind !== "literal" || /%G|\(signature|^-?signature/.test(value.value)),
  );
  return [...settings, ...formats].flatMap(({ name, value }) =>
    value === null ? [] : [use.doubt("option.unknown", value, `${name} ${value.value}`)],
  );
}

/** The readers of this file, by the names that rows use. */
export const GIT_READERS: Readonly<Record<string, Reader>> = {
  "git settings and signatures": settingDoubts,
  "git objects on stdin": batchObjects,
  "git archive options": archiveOptions,
  "git checkout": checkoutEffects,
  "git restore": restoreEffects,
  "git clean": cleanEffects,
  "git rm": removeEffects,
  "git mv": moveEffects,
};
