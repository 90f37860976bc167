import { loggedFiles, shownFiles } from "./git-settings.ts";
import type { Arg, Found, Use, Reader } from "./program-model.ts";

/** Options with which patches are only displayed. */
const LOOKS = new Set(["--stat", "--numstat", "--summary", "--check"]);

/** Options with which patches change the index, or write objects. */
const INDEXES = new Set([
  "--index",
  "--cached",
  "-N",
  "--intent-to-add",
  "-3",
  "--3way",
  "--build-fake-ancestor",
]);

/** Without an option for the index only files of the working tree change; git refuses paths outside and in `.git`. */
function applyEffects({ program, options, folder }: Use): readonly Found[] {
  const has = (names: ReadonlySet<string>): boolean => options.some(({ name }) => names.has(name));
  if (has(LOOKS) && !options.some(({ name }) => name === "--apply")) return [];
  return [
    has(INDEXES) || options.some(({ name }) => name === "--unsafe-paths")
      ? { kind: "repository", change: "local", what: program }
      : { kind: "write", path: folder },
  ];
}

const pruneEffects = ({ program, options }: Use): readonly Found[] =>
  options.some(({ name }) => name === "-n" || name === "--dry-run")
    ? []
    : [{ kind: "repository", change: "rewritten", what: program }];

/** Unreferenced objects are kept for two weeks by default. */
const gcEffects = ({ program, options }: Use): readonly Found[] => {
  const prune = options.findLast(({ name }) => name === "--prune")?.value ?? null;
  const all = prune !== null && (prune.kind !== "literal" || /^(?:now|all|0.*)$/i.test(prune.value));
  return [{ kind: "repository", change: all ? "rewritten" : "local", what: program }];
};
const URL = /^(?:(?:https?|ssh|git|ftps?):\/\/(?:[^@/]*@)?|[\w.-]+@)(\[[0-9a-f:.]+\]|[\w.-]+)/i;

/**
 * The other repository: its host where one is named, a helper that runs a program (`ext::`), otherwise a name from
 * the settings.
 */
function remoteEffects(use: Use): readonly Found[] {
  const named = use.options.filter(({ name }) => name === "--repo").map(({ value }) => value);
  const texts = [...named, ...use.operands].filter((arg): arg is Arg => arg !== null);
  const hosts = texts.flatMap(({ value }) => URL.exec(value)?.[1]?.toLowerCase() ?? []);
  const helpers = texts.filter(({ value }) => /^\w+::/.test(value));
  return [{ kind: "network", hosts }, ...helpers.map((arg) => use.doubt("option.loads-code", arg))];
}

/** Options that place patches elsewhere than in the folder. */
const PLACED: ReadonlySet<string> = new Set(["--stdout", "-o", "--output-directory"]);
/** Lists when one of these options is given or nothing is named; otherwise creates what is named. */
const LISTS: Readonly<Record<string, ReadonlySet<string>>> = {
  "git branch": new Set(
    `-l --list --contains --no-contains --with --without --merged --no-merged --points-at --show-current`.split(
      /\s+/,
    ),
  ),
  "git tag": new Set(
    `-l --list -n --contains --no-contains --with --without --merged --no-merged --points-at`.split(/\s+/),
  ),
};

function namedRefs(use: Use): readonly Found[] {
  const { program, options, operands } = use;
  const lists = operands.length === 0 || options.some(({ name }) => LISTS[program]?.has(name) === true);
  return lists ? [] : [{ kind: "repository", change: "local", what: program }];
}

const CHANGING_ACTIONS = new Set(["expire", "delete", "drop", "write"]);

/** `reflog`: a first word that is no action names the ref to show. */
function loggedRefs(use: Use): readonly Found[] {
  const [action] = use.operands;
  const shown = loggedFiles(use);
  if (action === undefined || action.value === "show") return shown;
  if (action.kind !== "literal") return [use.doubt("word.dynamic", action)];
  return CHANGING_ACTIONS.has(action.value)
    ? [{ kind: "repository", change: "rewritten", what: `${use.program} ${action.value}` }]
    : shown;
}

/** `-d` deletes a ref, and `--stdin` may; any other use changes the value of a ref. */
function updatedRefs({ program, options }: Use): readonly Found[] {
  const has = (wanted: string): boolean => options.some(({ name }) => name === wanted);
  if (has("-d")) return [{ kind: "repository", change: "rewritten", what: `${program} -d` }];
  if (has("--stdin")) return [{ kind: "repository", change: "lost", what: `${program} --stdin` }];
  return [{ kind: "repository", change: "local", what: program }];
}

/** With one name, the ref is read; with two, it is written. */
const symbolicRef = ({ program, operands }: Use): readonly Found[] =>
  operands.length > 1 ? [{ kind: "repository", change: "local", what: program }] : [];

/** `+name` forces the push of this ref. */
const forcedRefs = ({ operands }: Use): readonly Found[] =>
  operands
    .filter(({ value }: Arg) => value.startsWith("+"))
    .map(({ value, span }) => ({ kind: "repository", change: "forced", what: value, span }));
/** Without `-o`, the last name is the folder for the parts, also if it is the only one. */
const mailsplitEffects = (use: Use): readonly Found[] =>
  use.options.some(({ name }) => name === "-o")
    ? []
    : use.operands.slice(-1).map((arg) => ({ kind: "write", path: use.place(arg), span: arg.span }));
/** The readers of this file, by the names that rows use. */
export const GIT_CHANGES_READERS: Readonly<Record<string, Reader>> = {
  "git apply": applyEffects,
  "git gc": gcEffects,
  "git prune": pruneEffects,
  "git remotes": remoteEffects,
  "git forced refs": forcedRefs,
  "git format-patch": (use) => [
    ...shownFiles(use),
    ...(use.options.some(({ name }) => PLACED.has(name))
      ? []
      : [{ kind: "write", path: use.folder } as const]),
  ],
  "git branch": namedRefs,
  "git reflog": loggedRefs,
  "git mailsplit": mailsplitEffects,
  "git update-ref": updatedRefs,
  "git symbolic-ref": symbolicRef,
  "git replace": ({ program, options, operands }) =>
    operands.length === 0 || options.some(({ name }) => name === "-l" || name === "--list")
      ? []
      : [{ kind: "repository", change: "local", what: program }],
};
