/** git's commands (its settings and revisions are in `git-settings.ts`), forges, Mercurial and Subversion. */
import { hasOption } from "./argument-roles.ts";
import { isHarmless, loggedFiles, pathIn, shownFiles } from "./git-settings.ts";
import type { Arg, FoundEffect, UseReader, Use } from "./program-model.ts";

/** With a batch, stdin names the objects to show, unless all are shown. */
const batchObjects = (use: Use): readonly FoundEffect[] =>
  hasOption(use, "--batch", "--batch-command") && !hasOption(use, "--batch-all-objects")
    ? [{ kind: "read", path: null }]
    : [];

/** `git archive` searches for `-o` and `--remote` first, even among the values of other options. */
const archiveOptions = (use: Use): readonly FoundEffect[] =>
  use.options.flatMap(({ value, span }) =>
    value !== null && value.span !== span && value.value.startsWith("-")
      ? [use.doubt("option.unknown", value)]
      : [],
  );
const change = (change: "local" | "lost" | "rewritten", { program }: Use): FoundEffect => ({
  kind: "repository",
  change,
  what: program,
});

/** Files that are overwritten: their uncommitted changes are lost. */
const overwriteEffects = (paths: readonly Arg[], use: Use): readonly FoundEffect[] => [
  change("lost", use),
  ...paths.flatMap((arg) => {
    const path = pathIn(arg.value);
    return path === null
      ? []
      : [{ kind: "write", path: use.place({ ...arg, value: path }), span: arg.span } as const];
  }),
];

/** Looks like a file, not like a branch: a leading dot, or a suffix. */
const LOOKS_LIKE_FILE = /(?:^|\/)\.|\.[a-z]\w*$|\/$|[*?]/i;

function checkoutEffects(use: Use): readonly FoundEffect[] {
  const { args, operands } = use;
  const makes = hasOption(use, "-b", "-B", "--orphan", "--detach", "-d", "-t", "--track");
  const dashes = args.find(({ kind, value }) => value === "--" && kind === "literal");
  const after = dashes === undefined ? [] : operands.filter(({ span }) => span[0] > dashes.span[0]);
  if (after.length > 0) return overwriteEffects(after, use);
  const [first] = operands;
  const files =
    hasOption(use, "--ours", "--theirs", "-p", "--patch", "--pathspec-from-file", "-2", "-3") ||
    operands.length > 1 ||
    (first !== undefined && LOOKS_LIKE_FILE.test(first.value));
  return files && !makes ? overwriteEffects(operands, use) : [change("local", use)];
}

/** Changes only the index, unless the work tree is named too. */
const restoreEffects = (use: Use): readonly FoundEffect[] =>
  hasOption(use, "-S", "--staged") && !hasOption(use, "-W", "--worktree")
    ? [change("local", use)]
    : overwriteEffects(use.operands, use);

/** Deletes only with `-f`; the deleted files are in no commit. */
function cleanEffects(use: Use): readonly FoundEffect[] {
  if (hasOption(use, "-n", "--dry-run")) return [];
  return [change(hasOption(use, "-f", "--force") ? "rewritten" : "lost", use)];
}

function removeEffects(use: Use): readonly FoundEffect[] {
  if (hasOption(use, "-n", "--dry-run")) return [];
  if (hasOption(use, "--cached")) return [change("local", use)];
  const recursive = hasOption(use, "-r");
  const forced = hasOption(use, "-f", "--force");
  const deleted = use.operands.map(
    (arg) => ({ kind: "delete", path: use.place(arg), recursive, forced, span: arg.span }) as const,
  );
  return [change(forced ? "lost" : "local", use), ...deleted];
}

function moveEffects(use: Use): readonly FoundEffect[] {
  if (hasOption(use, "-n", "--dry-run")) return [];
  const sources = use.operands.slice(0, -1);
  const moved = sources.map(
    (arg) =>
      ({ kind: "delete", path: use.place(arg), recursive: false, forced: false, span: arg.span }) as const,
  );
  const targets = use.operands
    .slice(-1)
    .map((arg) => ({ kind: "write", path: use.place(arg), span: arg.span }) as const);
  return [change(hasOption(use, "-f", "--force") ? "lost" : "local", use), ...moved, ...targets];
}

/** Options whose value may request signatures, which gpg then verifies. */
const FORMAT_OPTIONS = new Set(["--format", "--pretty", "--group", "--sort"]);

/** `-c key=value` before a command, and formats that start gpg. */
function settingDoubts(use: Use): readonly FoundEffect[] {
  const { globals, options } = use;
  const settings = globals.filter(
    ({ name, value }) => name === "-c" && (value?.kind !== "literal" || !isHarmless(value.value)),
  );
  const formats = options.filter(
    ({ name, value }) =>
      FORMAT_OPTIONS.has(name) &&
      value !== null &&
      (value.kind !== "literal" || /%G|\(signature|^-?signature/.test(value.value)),
  );
  return [...settings, ...formats].flatMap(({ name, value }) =>
    value === null ? [] : [use.doubt("option.unknown", value, `${name} ${value.value}`)],
  );
}

/** Options with which patches are only displayed. */
const APPLY_LOOKS = new Set(["--stat", "--numstat", "--summary", "--check"]);

/** Options with which patches change the index, or write objects. */
const APPLY_INDEXES = new Set([
  "--index",
  "--cached",
  "-N",
  "--intent-to-add",
  "-3",
  "--3way",
  "--build-fake-ancestor",
]);

/** Without an option for the index only files of the working tree change; git refuses paths outside and in `.git`. */
function applyEffects({ program, options, folder }: Use): readonly FoundEffect[] {
  const has = (names: ReadonlySet<string>): boolean => options.some(({ name }) => names.has(name));
  if (has(APPLY_LOOKS) && !options.some(({ name }) => name === "--apply")) return [];
  return [
    has(APPLY_INDEXES) || options.some(({ name }) => name === "--unsafe-paths")
      ? { kind: "repository", change: "local", what: program }
      : { kind: "write", path: folder },
  ];
}

const pruneEffects = (use: Use): readonly FoundEffect[] =>
  hasOption(use, "-n", "--dry-run") ? [] : [change("rewritten", use)];

/** Unreferenced objects are kept for two weeks by default. */
const gcEffects = (use: Use): readonly FoundEffect[] => {
  const prune = use.options.findLast(({ name }) => name === "--prune")?.value ?? null;
  const all = prune !== null && (prune.kind !== "literal" || /^(?:now|all|0.*)$/i.test(prune.value));
  return [change(all ? "rewritten" : "local", use)];
};
const REMOTE_URL = /^(?:(?:https?|ssh|git|ftps?):\/\/(?:[^@/]*@)?|[\w.-]+@)(\[[0-9a-f:.]+\]|[\w.-]+)/i;

/**
 * The other repository: its host where one is named, a helper that runs a program (`ext::`), otherwise a name from
 * the settings.
 */
function remoteEffects(use: Use): readonly FoundEffect[] {
  const named = use.options.filter(({ name }) => name === "--repo").map(({ value }) => value);
  const texts = [...named, ...use.operands].filter((arg): arg is Arg => arg !== null);
  const hosts = texts.flatMap(({ value }) => REMOTE_URL.exec(value)?.[1]?.toLowerCase() ?? []);
  const helpers = texts.filter(({ value }) => /^\w+::/.test(value));
  return [{ kind: "network", hosts }, ...helpers.map((arg) => use.doubt("option.loads-code", arg))];
}

/** Lists when one of these options is given or nothing is named; otherwise creates what is named. */
const REF_LISTS: Readonly<Record<string, ReadonlySet<string>>> = {
  "git branch": new Set(
    `-l --list --contains --no-contains --with --without --merged --no-merged --points-at --show-current`.split(
      /\s+/,
    ),
  ),
  "git tag": new Set(
    `-l --list -n --contains --no-contains --with --without --merged --no-merged --points-at`.split(/\s+/),
  ),
};

function namedRefs(use: Use): readonly FoundEffect[] {
  const { program, options, operands } = use;
  const lists = operands.length === 0 || options.some(({ name }) => REF_LISTS[program]?.has(name) === true);
  return lists ? [] : [change("local", use)];
}

const CHANGING_ACTIONS = new Set(["expire", "delete", "drop", "write"]);

/** `reflog`: a first word that is no action names the ref to show. */
function loggedRefs(use: Use): readonly FoundEffect[] {
  const [action] = use.operands;
  const shown = loggedFiles(use);
  if (action === undefined || action.value === "show") return shown;
  if (action.kind !== "literal") return [use.doubt("word.dynamic", action)];
  return CHANGING_ACTIONS.has(action.value)
    ? [{ kind: "repository", change: "rewritten", what: `${use.program} ${action.value}` }]
    : shown;
}

/** `-d` deletes a ref, and `--stdin` may; any other use changes the value of a ref. */
function updatedRefs(use: Use): readonly FoundEffect[] {
  const { program } = use;
  if (hasOption(use, "-d")) return [{ kind: "repository", change: "rewritten", what: `${program} -d` }];
  if (hasOption(use, "--stdin")) return [{ kind: "repository", change: "lost", what: `${program} --stdin` }];
  return [change("local", use)];
}

/** With one name, the ref is read; with two, it is written. */
const symbolicRef = (use: Use): readonly FoundEffect[] =>
  use.operands.length > 1 ? [change("local", use)] : [];

/** `+name` forces the push of this ref. */
const forcedRefs = ({ operands }: Use): readonly FoundEffect[] =>
  operands
    .filter(({ value }: Arg) => value.startsWith("+"))
    .map(({ value, span }) => ({ kind: "repository", change: "forced", what: value, span }));

/** Without `-o`, the last name is the folder for the parts, also if it is the only one. */
const mailsplitEffects = (use: Use): readonly FoundEffect[] =>
  hasOption(use, "-o")
    ? []
    : use.operands.slice(-1).map((arg) => ({ kind: "write", path: use.place(arg), span: arg.span }));

/** Requests to a forge go over the network; a file among the arguments may be sent. */
function forgeRequest(use: Use): readonly FoundEffect[] {
  const files = use.operands.flatMap((arg: Arg) => {
    const value = arg.value.slice(arg.value.lastIndexOf("=") + 1).replace(/^@/, "");
    return /^(?:\.|\/(?!\/))/.test(value)
      ? [{ kind: "read", path: use.place({ ...arg, value }), span: arg.span } as const]
      : [];
  });
  return [{ kind: "network", hosts: [] }, ...files];
}

/** Settings whose key names a token or a password may show it. */
const forgeTokens = (use: Use): readonly FoundEffect[] =>
  use.operands
    .filter(({ kind, value }) => kind !== "literal" || /token|oauth|password/i.test(value))
    .map((arg) => use.doubt("operand.unknown", arg));

/** The program installs its own scripts as git hooks. */
const installedHooks = ({ folder }: Use): readonly FoundEffect[] => [
  { kind: "write", path: folder === null ? null : `${folder}/.git/hooks` },
];
const lfsAttributes = ({ operands, folder }: Use): readonly FoundEffect[] =>
  operands.length === 0 ? [] : [{ kind: "write", path: folder === null ? null : `${folder}/.gitattributes` }];

/** `^/trunk`: from the root of the repository on its server. */
const svnAddresses = ({ operands }: Use): readonly FoundEffect[] =>
  operands
    .filter(({ value }) => value.startsWith("^/"))
    .map(({ span }) => ({ kind: "network", hosts: [], span }));

/** Another repository by its address, which may stand in any argument and in values of options. */
const otherRepositories = (use: Use): readonly FoundEffect[] => [
  ...[...use.operands, ...[...use.globals, ...use.options].flatMap(({ value }) => value ?? [])]
    .filter(({ value }) => /^[a-z][a-z0-9+.-]*:\/\//i.test(value))
    .map(({ span }): FoundEffect => ({ kind: "network", hosts: [], span })),
  ...use.options.flatMap(({ value, span }) =>
    value !== null && value.span !== span && /^-\D/.test(value.value)
      ? [use.doubt("option.unknown", value)]
      : [],
  ),
];

/** `foreach`: its words are one text for a shell. */
function foreachModule(use: Use): readonly FoundEffect[] {
  const [first] = use.operands;
  if (first === undefined) return [];
  const known = use.operands.every(({ kind }) => kind === "literal");
  const text: Arg = {
    ...first,
    kind: known ? "literal" : "dynamic",
    value: use.operands.map(({ value }) => value).join(" "),
  };
  return [use.doubt("operand.unknown", first), ...use.shell(text)];
}

/** `show NAME` contacts the remote, unless an option forbids it. */
const shownRemote = ({ options, operands }: Use): readonly FoundEffect[] =>
  operands.length === 0 || options.some(({ name }) => name === "-n") ? [] : [{ kind: "network", hosts: [] }];

const removedTree = (use: Use): readonly FoundEffect[] => [
  change(hasOption(use, "-f", "--force") ? "lost" : "local", use),
];

/** The readers of this file, by the names that rows use. */
export const VERSION_CONTROL_READERS: Readonly<Record<string, UseReader>> = {
  "git settings and signatures": settingDoubts,
  "git objects on stdin": batchObjects,
  "git archive options": archiveOptions,
  "git checkout": checkoutEffects,
  "git restore": restoreEffects,
  "git clean": cleanEffects,
  "git rm": removeEffects,
  "git mv": moveEffects,
  "git apply": applyEffects,
  "git gc": gcEffects,
  "git prune": pruneEffects,
  "git remotes": remoteEffects,
  "git forced refs": forcedRefs,
  "git format-patch": (use) => [
    ...shownFiles(use),
    ...(hasOption(use, "--stdout", "-o", "--output-directory")
      ? []
      : [{ kind: "write", path: use.folder } as const]),
  ],
  "git branch": namedRefs,
  "git reflog": loggedRefs,
  "git mailsplit": mailsplitEffects,
  "git update-ref": updatedRefs,
  "git symbolic-ref": symbolicRef,
  "git replace": (use) =>
    use.operands.length === 0 || hasOption(use, "-l", "--list") ? [] : [change("local", use)],
  "lfs attributes": lfsAttributes,
  "writes hooks": installedHooks,
  "gh api": forgeRequest,
  "gh tokens": forgeTokens,
  "hg settings": otherRepositories,
  "svn address": svnAddresses,
  "git remote show": shownRemote,
  "git worktree remove": removedTree,
  "git submodule foreach": foreachModule,
};
