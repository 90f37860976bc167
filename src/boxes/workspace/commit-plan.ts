import path from "node:path";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { isInside } from "../../core/file-names.ts";
import { type ConfigEntry, parseGitConfig } from "./git-directory.ts";

/** The repository of a commit, as absolute paths. */
export interface CommitTarget {
  readonly workspace: string;
  /** The folder to commit: the workspace, or a submodule or nested repository in it. */
  readonly worktree: string;
  readonly gitDir: string;
  /** The main repository of a linked worktree; else the same as `gitDir`. */
  readonly commonDir: string;
  /** The texts of config and config.worktree, if they exist. */
  readonly config: readonly string[];
  /** Used if the repository names no author. */
  readonly identity: { readonly name: string; readonly email: string };
}

interface CommitMount {
  readonly path: string;
  readonly writable: boolean;
  /** Left out if nothing is there: git does not create it for a commit. */
  readonly optional: boolean;
}

/** What the commit's container needs besides image and limits. Mounts list parents before children. */
export interface CommitPlan {
  readonly argv: readonly string[];
  /** Precedes the words of a command that only reads; everything that could start a program is off for it too. */
  readonly looking: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly mounts: readonly CommitMount[];
  /** Files that git obeys and no commit creates: if they are missing before a commit, they are missing afterwards. */
  readonly obeyed: readonly string[];
}

/** The container of one `git add` or `git commit`. Refuses what could start a program; reads and runs nothing. */
export function commitPlan(target: CommitTarget, args: readonly string[]): CommitPlan {
  const entries = target.config.map((text) => parseGitConfig(text));
  const known = entries.flatMap((list) => list ?? []);
  if (entries.includes(undefined)) throw refuseCommit("its configuration could not be read");
  const refused = refusedKeys(known, target);
  if (refused.length > 0) throw refuseCommit(`its configuration holds ${refused.join(", ")}`);
  return {
    argv: gitArgv(args),
    looking: GIT,
    env: commitEnvironment(target, known),
    cwd: target.worktree,
    mounts: commitMounts(target),
    obeyed: [...new Set([target.commonDir, target.gitDir])].flatMap((folder) =>
      [...FROZEN, ...IN_PROGRESS].map((name) => path.join(folder, name)),
    ),
  };
}

/** The keys that are not in the list, each once, in the order of the file. */
export function refusedKeys(
  entries: readonly ConfigEntry[],
  { gitDir, worktree }: Pick<CommitTarget, "gitDir" | "worktree">,
): readonly string[] {
  const bad = entries.filter(({ key, value }) =>
    key === "core.worktree" ? path.resolve(gitDir, value) !== worktree : !isKnown(key),
  );
  return [...new Set(bad.map(({ key }) => key))];
}

function isKnown(key: string): boolean {
  const section = key.slice(0, key.indexOf("."));
  const name = key.slice(key.lastIndexOf(".") + 1);
  const plain = `${section}.${name}` === key;
  return KEYS.has(`${section}.*`) || KEYS.has(plain ? key : `${section}.*.${name}`);
}

/**
 * Keys of a repository's own configuration that a commit may be made with. Everything else is refused, because git
 * keeps adding keys that run programs. `*` stands for a subsection or for all names of a section.
 */
const COMMIT_KEYS: readonly string[] = [
  "core.repositoryformatversion",
  "core.filemode",
  "core.bare",
  "core.logallrefupdates",
  "core.ignorecase",
  "core.precomposeunicode",
  "core.symlinks",
  "core.autocrlf",
  "core.eol",
  "core.safecrlf",
  "core.whitespace",
  "core.compression",
  "core.loosecompression",
  "core.bigfilethreshold",
  "core.quotepath",
  "core.abbrev",
  "core.sharedrepository",
  "core.preloadindex",
  "core.checkstat",
  "core.trustctime",
  "core.protecthfs",
  "core.protectntfs",
  "core.longpaths",
  "core.commentchar",
  "core.excludesfile",
  "core.sparsecheckout",
  "core.sparsecheckoutcone",
  // Overridden on the command line or by the environment, see GIT_OFF and commitEnvironment.
  "core.hookspath",
  "core.fsmonitor",
  "core.untrackedcache",
  "core.editor",
  "core.pager",
  "core.attributesfile",
  "commit.gpgsign",
  "gc.auto",
  "extensions.objectformat",
  "extensions.worktreeconfig",
  "extensions.noop",
  "extensions.preciousobjects",
  "extensions.relativeworktrees",
  "index.version",
  "user.name",
  "user.email",
  "user.useconfigonly",
  "author.name",
  "author.email",
  "committer.name",
  "committer.email",
  "commit.cleanup",
  "commit.status",
  "commit.verbose",
  "i18n.commitencoding",
  "branch.*",
  "remote.*.url",
  "remote.*.pushurl",
  "remote.*.fetch",
  "remote.*.push",
  "remote.*.mirror",
  "remote.*.tagopt",
  "remote.*.prune",
  "remote.*.gh-resolved",
  "submodule.active",
  "submodule.*.url",
  "submodule.*.active",
  "submodule.*.branch",
  "submodule.*.ignore",
  "advice.*",
  "color.*",
  "fetch.prune",
  "init.defaultbranch",
  "pull.rebase",
  "pull.ff",
  "push.default",
  "push.autosetupremote",
  "rebase.autostash",
  "rerere.enabled",
  "lfs.repositoryformatversion",
];

const KEYS = new Set(COMMIT_KEYS);

/** The whole command line of `git add …` or `git commit …` (`args` begins with the subcommand). */
export function gitArgv(args: readonly string[]): readonly string[] {
  const [verb = "", ...words] = args;
  readGitWords(verb, words);
  return [...GIT, ...args];
}

/** Options before the subcommand: whatever could start a program is off. They override the repository's settings. */
const GIT_OFF: readonly string[] = [
  "core.hooksPath=/dev/null",
  "core.fsmonitor=false",
  "core.untrackedCache=false",
  "core.editor=true",
  "core.pager=cat",
  "core.attributesFile=/dev/null",
  "core.sshCommand=false",
  "core.askPass=true",
  "commit.gpgsign=false",
  "tag.gpgsign=false",
  "gpg.program=false",
  "gpg.ssh.program=false",
  "gpg.x509.program=false",
  "gc.auto=0",
  "maintenance.auto=false",
  "credential.helper=",
  "protocol.allow=never",
  "interactive.diffFilter=",
  "submodule.recurse=false",
  // A new commit of a submodule counts; git is not started in the submodule to see whether it is dirty.
  "diff.ignoreSubmodules=dirty",
  "safe.bareRepository=explicit",
  // Without git-lfs, git would commit the file itself instead of its pointer; so the filter fails and says why.
  "filter.lfs.required=true",
  "filter.lfs.clean=false",
];

const GIT = ["git", "--no-pager", "--literal-pathspecs", ...GIT_OFF.flatMap((off) => ["-c", off])];

/** Added to the box's own environment, which is built from empty. */
function commitEnvironment(
  target: CommitTarget,
  entries: readonly ConfigEntry[],
): Readonly<Record<string, string>> {
  const has = (key: string): boolean => entries.some((entry) => entry.key === key);
  const { name, email } = target.identity;
  return {
    GIT_DIR: target.gitDir,
    GIT_WORK_TREE: target.worktree,
    ...(target.commonDir === target.gitDir ? {} : { GIT_COMMON_DIR: target.commonDir }),
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_CONFIG_SYSTEM: "/dev/null",
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_ATTR_NOSYSTEM: "1",
    GIT_EDITOR: "true",
    GIT_SEQUENCE_EDITOR: "true",
    GIT_PAGER: "cat",
    GIT_ASKPASS: "true",
    GIT_TERMINAL_PROMPT: "0",
    GIT_ALLOW_PROTOCOL: "",
    GIT_NO_LAZY_FETCH: "1",
    ...(has("user.name") ? {} : { GIT_AUTHOR_NAME: name, GIT_COMMITTER_NAME: name }),
    ...(has("user.email") ? {} : { GIT_AUTHOR_EMAIL: email, GIT_COMMITTER_EMAIL: email }),
  };
}

/**
 * What stays read-only inside the git directory: everything that a host program would later obey. A commit writes only
 * objects, refs, logs, index, HEAD, COMMIT_EDITMSG and their lock files.
 */
const FROZEN = [
  "config",
  "config.worktree",
  "hooks",
  "info",
  "modules",
  "worktrees",
  "commondir",
  "gitdir",
  "objects/info",
];

/** Operations in progress, with the commands that `--continue` runs. A commit begins none and need not write them. */
const IN_PROGRESS = ["rebase-merge", "rebase-apply", "sequencer"];

const readOnly = (file: string): CommitMount => ({ path: file, writable: false, optional: true });

const writable = (file: string): CommitMount => ({ path: file, writable: true, optional: false });

const frozenMounts = (folder: string): readonly CommitMount[] =>
  [...FROZEN, ...IN_PROGRESS].map((name) => readOnly(path.join(folder, name)));

function commitMounts({ workspace, gitDir, commonDir }: CommitTarget): readonly CommitMount[] {
  const shared = [writable(commonDir), ...frozenMounts(commonDir)];
  const own = gitDir === commonDir ? [] : [writable(gitDir), ...frozenMounts(gitDir)];
  return [
    { path: workspace, writable: false, optional: false },
    ...pinnedFolders(workspace, commonDir),
    ...shared,
    ...own,
  ];
}

/** Folders between the workspace and a git directory in it: pinned, as in every box. */
function pinnedFolders(workspace: string, gitDir: string): readonly CommitMount[] {
  if (!isInside(workspace, gitDir)) return [];
  const parts = path
    .relative(workspace, path.dirname(gitDir))
    .split(path.sep)
    .filter((part) => part !== "");
  return parts.map((_, index) => ({
    path: path.join(workspace, ...parts.slice(0, index + 1)),
    writable: false,
    optional: false,
  }));
}

/** The words after a subcommand of git, read as git itself reads them. */
export interface GitWords {
  /** In order, by their names without dashes; the value is null for an option that takes none. */
  readonly options: readonly (readonly [name: string, value: string | null])[];
  readonly paths: readonly string[];
}

interface KnownOption {
  readonly takesValue: boolean;
  /** The values that the option accepts. */
  readonly value?: RegExp;
}

const flags = (names: string): readonly (readonly [string, KnownOption])[] =>
  names.split(" ").map((name) => [name, { takesValue: false }] as const);

const valueOptions = (names: string, value?: RegExp): readonly (readonly [string, KnownOption])[] =>
  names
    .split(" ")
    .map((name) => [name, { takesValue: true, ...(value === undefined ? {} : { value }) }] as const);

/** The options that `add` and `commit` accept here. None of them names a program or a file elsewhere. */
const OPTIONS: ReadonlyMap<string, ReadonlyMap<string, KnownOption>> = new Map([
  [
    "add",
    new Map([
      ...flags("A u f v n N all update force verbose dry-run intent-to-add ignore-errors no-all renormalize"),
      ...flags("sparse"),
      ...valueOptions("chmod", /^[+-]x$/),
    ]),
  ],
  [
    "commit",
    new Map([
      ...flags("a q v n s all quiet verbose no-verify signoff amend no-edit allow-empty allow-empty-message"),
      ...flags("only include reset-author dry-run no-gpg-sign no-post-rewrite"),
      ...valueOptions("m message author date cleanup fixup squash trailer"),
    ]),
  ],
]);

/**
 * Git permutes: an option may follow a path, and the value of an option is the rest of its word or the next word,
 * whatever that is, even `--`. Options that git would complete (`--mess`) or whose value is optional (`-S`, `-u`) are
 * refused like everything else that is not in the table: only words that are read with certainty are passed on.
 */
export function readGitWords(verb: string, words: readonly string[]): GitWords {
  const known = OPTIONS.get(verb);
  if (known === undefined) throw refuseCommit(`git ${verb} is neither add nor commit`);
  const options: (readonly [string, string | null])[] = [];
  const paths: string[] = [];
  const rest = [...words];
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    if (word === "--") return { options, paths: [...paths, ...rest] };
    if (!word.startsWith("-") || word === "-") paths.push(word);
    else if (word.startsWith("--")) options.push(readLong({ verb, word, known }, rest));
    else options.push(...readShort({ verb, word, known }, rest));
  }
  return { options, paths };
}

interface WordContext {
  readonly verb: string;
  readonly word: string;
  readonly known: ReadonlyMap<string, KnownOption>;
}

type Option = GitWords["options"][number];

function readLong(reading: WordContext, rest: string[]): Option {
  const { word, known } = reading;
  const equals = word.indexOf("=");
  const name = word.slice("--".length, equals < 0 ? undefined : equals);
  const option = name.length > 1 ? known.get(name) : undefined;
  if (option === undefined) throw unknown(reading, completed(name, known));
  if (!option.takesValue && equals >= 0) throw refuseCommit(`git ${reading.verb} ${name} takes no value`);
  if (!option.takesValue) return [name, null];
  return [name, valueOf(reading, option, equals < 0 ? rest.shift() : word.slice(equals + 1))];
}

/** Several options in one word; the first that takes a value takes the rest of the word. */
function readShort(reading: WordContext, rest: string[]): readonly Option[] {
  const { word, known } = reading;
  const options: Option[] = [];
  for (let at = 1; at < word.length; at += 1) {
    const letter = word.charAt(at);
    const option = known.get(letter);
    if (option === undefined) throw unknown(reading, "");
    if (!option.takesValue) {
      options.push([letter, null]);
      continue;
    }
    const left = word.slice(at + 1);
    options.push([letter, valueOf(reading, option, left === "" ? rest.shift() : left)]);
    return options;
  }
  return options;
}

function valueOf(
  { verb, word }: WordContext,
  { value: fits }: KnownOption,
  value: string | undefined,
): string {
  if (value === undefined) throw refuseCommit(`git ${verb} ${word} has no value`);
  if (fits !== undefined && !fits.test(value))
    throw refuseCommit(`git ${verb} ${word} takes no such value: ${value}`);
  return value;
}

const completed = (name: string, known: ReadonlyMap<string, KnownOption>): string => {
  const candidates = [...known.keys()].filter((each) => name.length > 1 && each.startsWith(name));
  return candidates.length === 0 ? "" : `; write it out: --${candidates.join(", --")}`;
};

const unknown = ({ verb, word }: WordContext, more: string): HarnessError =>
  refuseCommit(`git ${verb} ${word} is not among the options that it takes here${more}`);

const refuseCommit = (why: string): HarnessError =>
  new HarnessError(EXIT.refused, `no commit from inside this repository: ${why}`, "commit it yourself");
