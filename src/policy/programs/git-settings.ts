import type { Arg, Found, GivenOption, Model, Use } from "./program-model.ts";

const BATCHES = "--stdin -z -n -v --verbose -q --quiet --non-matching --index --no-index";

const WRITES = new Set(
  "--replace-all --add --unset --unset-all --rename-section --remove-section".split(" "),
);

const READS = new Set(
  "-l --list --get --get-all --get-regexp --get-urlmatch --get-color --get-colorbool".split(" "),
);

const CHANGING = new Set(["set", "unset", "rename-section", "remove-section", "edit"]);

const fileGiven = ({ options }: Use): Arg | null =>
  options.findLast(({ name }) => name === "-f" || name === "--file")?.value ?? null;

const SECRET = /pass(?:word|phrase)?$|token|secret|extraheader|cookie/i;

/** A section that is renamed may get any name; what is edited may be anything. */
const mayBeObeyed = (key: Arg | undefined, { args }: Use): boolean =>
  key?.kind !== "literal" || isObeyed(key.value) || args.some(({ value }) => WIDE.has(value));

/** Sections of git's settings that name programs to run, hosts to reach or more files of settings. */
const OBEYED_SECTIONS = new Set(
  `alias browser credential credentialcache difftool extensions filter gpg guitool hook http imap include includeif instaweb lfs
  man mergetool pager protocol safe sendemail ssh tar trailer url`.split(/\s+/),
);
/** Settings of that kind in sections that also hold others; `*` stands for a name in between. */
const OBEYED = new Set(
  `core.alternaterefscommand core.askpass core.attributesfile core.editor core.fsmonitor core.gitproxy core.hookspath core.pager
  core.sshcommand core.worktree diff.external diff.*.command diff.*.textconv gc.prunecommand init.templatedir
  interactive.difffilter merge.*.driver receive.procreceiverefs remote.*.proxy remote.*.receivepack remote.*.uploadpack
  remote.*.vcs sequence.editor submodule.*.update uploadpack.packobjectshook web.browser`.split(/\s+/),
);

const patternOf = (key: string, section: string): string => {
  const last = key.slice(key.lastIndexOf(".") + 1);
  return `${section}.${section.length + last.length + 1 === key.length ? "" : "*."}${last}`;
};

const WIDE = new Set(["--rename-section", "rename-section", "--system"]);

/** Its first operand is an action since 2.46, and a key before that; both are understood. */
const CONFIG: Model = {
  options: `-f: --file= --blob= -lz -e!ask --global --system --local --worktree --get --get-all --get-regexp --get-urlmatch
    --replace-all --add --unset --unset-all --rename-section --remove-section --list --fixed-value --edit!ask --get-color
    --get-colorbool -t: --type= --no-type --bool --int --bool-or-int --bool-or-str --path --expiry-date --null --name-only --includes!ask
    --no-includes --show-origin --no-show-origin --show-scope --no-show-scope --show-names --no-show-names --default= --all
    --regexp --value= --url= --append --comment=`,
  operands: "data*",
  also: configured,
};

/** Commands that show the work tree, the index, the objects and names of commits, and change none of them. */
export const STATE: Readonly<Record<string, Model>> = {
  status: {
    options: `-vsbz -u? -M? --verbose --no-verbose --short --no-short --branch --no-branch --show-stash --no-show-stash
      --ahead-behind --no-ahead-behind --porcelain=? --long --no-long --null --untracked-files=? --no-untracked-files
      --ignored=? --no-ignored --ignore-submodules=? --column=? --no-column --renames --no-renames --find-renames=?`,
    operands: "data*",
  },
  config: CONFIG,
  "ls-files": {
    options: `-ztvfcdmoiskur -x: -X:read --cached --deleted --modified --others --ignored --stage --killed --directory
      --no-directory --eol --empty-directory --no-empty-directory --unmerged --resolve-undo --exclude= --exclude-from=read
      --exclude-per-directory= --exclude-standard --full-name --recurse-submodules --error-unmatch --with-tree= --abbrev=?
      --no-abbrev --debug --deduplicate --sparse --format=`,
    operands: "data*",
  },
  "ls-tree": {
    options: `-drtlz --long --name-only --name-status --object-only --full-name --full-tree --format= --abbrev=? --no-abbrev`,
    operands: "data*",
  },
  "rev-parse": {
    options: `-q --verify --quiet --short=? --not --symbolic --symbolic-full-name --abbrev-ref=? --all --branches=? --tags=?
      --remotes=? --glob= --exclude= --exclude-hidden= --disambiguate= --since= --after= --until= --before= --default --prefix
      --revs-only --no-revs --flags --no-flags --git-dir --absolute-git-dir --git-common-dir --git-path --path-format=
      --is-inside-git-dir --is-inside-work-tree --is-bare-repository --is-shallow-repository --show-cdup --show-prefix
      --show-toplevel --show-superproject-working-tree --shared-index-path --show-object-format=? --show-ref-format
      --local-env-vars --sq --resolve-git-dir=read --parseopt!ask --sq-quote!ask --end-of-options`,
    operands: "data*",
  },
  "show-ref": {
    options: `-dqs --head --heads --branches --tags --verify --exists --dereference --hash=? --abbrev=? --quiet
      --exclude-existing=?`,
    operands: "data*",
  },
  var: { options: "-l", operands: "data", tells: "-l -h --help" },
  "check-attr": { options: "-az --all --cached --stdin --source=", operands: "data*" },
  "check-ignore": { options: BATCHES, operands: "data*" },
  "check-mailmap": { options: "--stdin --mailmap-file=read --mailmap-blob=", operands: "data*" },
  "check-ref-format": {
    options: "--branch --normalize --allow-onelevel --no-allow-onelevel --refspec-pattern --print",
    operands: "data*",
  },
  "count-objects": { options: "-vH --verbose --human-readable" },
  "verify-pack": { options: "-vs --verbose --stat-only --object-format=", operands: "read*" },
  "show-index": { options: "--object-format=" },
  "get-tar-commit-id": {},
  "patch-id": { options: "--stable --unstable --verbatim" },
  stripspace: { options: "-sc --strip-comments --comment-lines" },
  column: {
    options: "--command= --mode=? --raw-mode= --width= --indent= --nl= --padding=",
  },
  "fmt-merge-msg": { options: "-m: -F:read --log=? --no-log --message= --into-name= --file=read" },
  "interpret-trailers": {
    options: `--in-place!write --trim-empty --where= --no-where --if-exists= --no-if-exists --if-missing= --no-if-missing
      --only-trailers --only-input --unfold --parse --no-divider --trailer=`,
    operands: "read*",
  },
  fsck: {
    options: `-v --verbose --unreachable --dangling --no-dangling --tags --root --cache --reflogs --no-reflogs --full --no-full
      --connectivity-only --strict --lost-found!local --progress --no-progress --name-objects --no-name-objects --references
      --no-references`,
    operands: "data*",
  },
  "verify-commit": { options: "-v --verbose --raw", operands: "data*", fixed: ["ask"] },
  "verify-tag": { options: "-v --verbose --raw --format=", operands: "data*", fixed: ["ask"] },
  "hash-object": {
    options: "-t: -w!local --stdin --stdin-paths --literally --path= --no-filters",
    operands: "read*",
  },
  mailinfo: {
    options: "-kbmun --encoding= --scissors --no-scissors --message-id --quoted-cr=",
    operands: "write write",
  },
  mailsplit: { options: "-o:write -f: -d: -b --keep-cr --mboxrd -NUM", operands: "read*" },
  "merge-file": {
    options: `-pq -L: --stdout --object-id --diff3 --zdiff3 --ours --theirs --union --marker-size= --diff-algorithm= --quiet`,
    operands: "write read read",
  },
};

/** Whether git on the host would run, load or reach what this setting says. */
function isObeyed(key: string): boolean {
  const folded = key.toLowerCase();
  const [section = ""] = folded.split(".", 1);
  return OBEYED_SECTIONS.has(section) || OBEYED.has(patternOf(folded, section));
}

/** Settings that only change what is shown, whatever their value. */
const SHOWN_SECTIONS = new Set(["advice", "color", "column", "i18n", "status", "versionsort"]);
const SHOWN = new Set(
  `blame.coloring blame.date blame.showemail blame.showroot branch.sort core.abbrev core.commentchar core.ignorecase
  core.precomposeunicode core.preloadindex core.quotepath core.untrackedcache core.whitespace diff.algorithm
  diff.autorefreshindex diff.colormoved diff.colormovedws diff.context diff.dirstat diff.dstprefix diff.ignoresubmodules
  diff.indentheuristic diff.interhunkcontext diff.mnemonicprefix diff.noprefix diff.relative diff.renamelimit diff.renames
  diff.srcprefix diff.statgraphwidth diff.statnamewidth diff.submodule diff.suppressblankempty diff.wordregex
  diff.wserrorhighlight gc.auto grep.column grep.extendedregexp grep.fullname grep.linenumber grep.patterntype grep.threads
  init.defaultbranch log.abbrevcommit log.date log.decorate log.follow log.graphcolors log.initialdecorationset log.mailmap
  log.showroot maintenance.auto merge.conflictstyle merge.renames merge.stat pack.threads rerere.enabled stash.showpatch
  stash.showstat tag.sort user.email user.name`.split(/\s+/),
);
/** Those that are harmless with these values only. */
const HARMLESS_VALUES: Readonly<Record<string, readonly string[]>> = {
  "commit.gpgsign": ["false", "0", "no"],
  "core.editor": ["true", ":"],
  "core.fsmonitor": ["false", "0", "no", ""],
  "core.hookspath": ["/dev/null"],
  "core.pager": ["cat", ""],
  "log.showsignature": ["false", "0", "no"],
  "pager.branch": ["false", "0", "no", "cat", ""],
  "pager.diff": ["false", "0", "no", "cat", ""],
  "pager.log": ["false", "0", "no", "cat", ""],
  "pager.show": ["false", "0", "no", "cat", ""],
  "pager.status": ["false", "0", "no", "cat", ""],
  "tag.gpgsign": ["false", "0", "no"],
};

/** `key=value` for one run, as after `git -c`. */
export function isHarmless(setting: string): boolean {
  const equals = setting.indexOf("=");
  const key = (equals === -1 ? setting : setting.slice(0, equals)).toLowerCase();
  const [section = ""] = key.split(".", 1);
  if (SHOWN.has(key) || SHOWN_SECTIONS.has(section)) return true;
  return (
    equals !== -1 &&
    Object.hasOwn(HARMLESS_VALUES, key) &&
    HARMLESS_VALUES[key]?.includes(setting.slice(equals + 1)) === true
  );
}

function configured(use: Use): readonly Found[] {
  const unclear = use.args
    .filter(({ kind }) => kind !== "literal")
    .map((arg) => use.doubt("word.dynamic", arg));
  return [...unclear, ...(isReading(use) ? shown(use) : written(use))];
}

/** Without an action a key alone is read, and a key with a value is set. */
function isReading({ options, operands: [first, second] }: Use): boolean {
  const has = (names: ReadonlySet<string>): boolean => options.some(({ name }) => names.has(name));
  if (has(WRITES)) return false;
  if (has(READS) || first?.value === "get" || first?.value === "list") return true;
  return second === undefined && !CHANGING.has(first?.value ?? "");
}

function shown(use: Use): readonly Found[] {
  const file = fileGiven(use);
  const secrets = use.operands.filter(({ value }) => SECRET.test(value));
  return [
    ...(file === null ? [] : [{ kind: "read", path: use.place(file), span: file.span } as const]),
    ...secrets.map((arg) => use.doubt("operand.unknown", arg)),
  ];
}

function written(use: Use): readonly Found[] {
  const [first, second] = use.operands;
  const key = CHANGING.has(first?.value ?? "") ? second : first;
  const file = fileGiven(use);
  const span = key?.span ?? use.span;
  if (file !== null) return [{ kind: "write", path: use.place(file), span }];
  const what = `${use.program} ${key?.value ?? ""}`.trimEnd();
  return mayBeObeyed(key, use)
    ? [{ kind: "write", path: fileOf(use), span }]
    : [{ kind: "repository", change: "local", what, span }];
}

/** The file that a setting goes to. */
function fileOf({ options, home, folder }: Use): string | null {
  const has = (wanted: string): boolean => options.some(({ name }) => name === wanted);
  if (has("--system")) return "/etc/gitconfig";
  if (has("--global")) return `${home}/.gitconfig`;
  return folder === null ? null : `${folder}/.git/config`;
}

/** Options that many commands of git share, in the small language of `Model.options`. Arities are those of git 2.39 to 2.5x. */

/** What a diff looks like; one letter. */
export const DIFF_LETTERS = "-puswabzRWDrtcm -U? -M? -C? -B? -X? -l: -S: -G: -I: -O:read";

/** What a diff looks like. */
export const DIFF = `--patch --no-patch --unified=? --function-context --no-function-context --raw --patch-with-raw --patch-with-stat
  --numstat --shortstat --dirstat=? --cumulative --dirstat-by-file=? --check --summary --name-only --name-status --stat=?
  --stat-width= --stat-name-width= --stat-graph-width= --stat-count= --compact-summary --no-compact-summary --binary
  --full-index --no-full-index --color=? --no-color --ws-error-highlight= --abbrev=? --no-abbrev --src-prefix= --dst-prefix=
  --line-prefix= --no-prefix --default-prefix --inter-hunk-context= --output-indicator-new= --output-indicator-old=
  --output-indicator-context= --break-rewrites=? --find-renames=? --irreversible-delete --find-copies=? --find-copies-harder
  --no-renames --rename-empty --no-rename-empty --follow --no-follow --minimal --no-minimal --ignore-all-space
  --ignore-space-change --ignore-space-at-eol --ignore-cr-at-eol --ignore-blank-lines --ignore-matching-lines=
  --indent-heuristic --no-indent-heuristic --patience --histogram --diff-algorithm= --anchored= --word-diff=?
  --word-diff-regex= --color-words=? --color-moved=? --no-color-moved --color-moved-ws= --no-color-moved-ws --relative=?
  --no-relative --text --no-text --exit-code --no-exit-code --quiet --ext-diff!ask --no-ext-diff --textconv!ask --no-textconv
  --ignore-submodules=? --submodule=? --ita-invisible-in-index --ita-visible-in-index --pickaxe-all --pickaxe-regex
  --rotate-to= --skip-to= --find-object= --diff-filter= --output=write --diff-merges= --no-diff-merges --remerge-diff --cc
  --dd --combined-all-paths`;

/** Which commits; one letter. */
export const WALK_LETTERS = "-n: -iEFPg -NUM";

/** Which commits, and how they are shown. Those with `=?` take a value after `=` only, others in the next word too. */
export const WALK = `--max-count= --skip= --since= --after= --until= --before= --since-as-filter= --max-age= --min-age= --author=
  --grep-reflog= --grep= --all-match --invert-grep --regexp-ignore-case --basic-regexp --extended-regexp
  --fixed-strings --perl-regexp --remove-empty --merges --no-merges --min-parents=? --max-parents=? --no-min-parents
  --no-max-parents --first-parent --exclude-first-parent-only --not --all --branches=? --tags=? --remotes=? --glob= --exclude=
  --exclude-hidden= --reflog --single-worktree --ignore-missing --bisect --stdin --cherry-mark --cherry-pick --left-only
  --right-only --cherry --walk-reflogs --merge --boundary --simplify-by-decoration --show-pulls --full-history --dense
  --sparse --simplify-merges --ancestry-path=? --date-order --author-date-order --topo-order --reverse --no-walk=? --do-walk
  --pretty=? --format=? --abbrev-commit --no-abbrev-commit --oneline --encoding= --expand-tabs=? --no-expand-tabs --notes=?
  --no-notes --show-notes=? --show-notes-by-default --standard-notes --no-standard-notes --show-signature!ask
  --no-show-signature --relative-date --date= --parents --children --left-right --graph --no-graph --show-linear-break=?
  --full-diff --log-size --count`;

/** What `log`, `show` and their like add to those. */
export const LOG = `${DIFF_LETTERS} ${DIFF} ${WALK_LETTERS} ${WALK} -q -L: --committer= --source --no-source --use-mailmap --mailmap
  --no-use-mailmap --no-mailmap --clear-decorations --decorate-refs= --decorate-refs-exclude= --decorate=? --no-decorate`;

/** Which refs, and how they are shown: in a list of branches, tags or refs. A commit may stand in the next word; it is data there too. */
export const REFS = `--contains=? --no-contains=? --with=? --without=? --merged=? --no-merged=? --points-at=? --no-points-at --sort=
  --no-sort --format= --no-format --color=? --no-color --column=? --no-column --ignore-case --no-ignore-case --omit-empty`;

/** Paths from a file, one a line. */
export const PATHS_FROM = "--pathspec-from-file=read --pathspec-file-nul";

/** Reads of the files whose content its operands may show: paths, `revision:path`, and revisions, which are no files then. */
export const shownFiles = (use: Use): readonly Found[] => readsOf(use.operands, use);

/** `log`: only with a patch is there content. */
export const loggedFiles = (use: Use): readonly Found[] =>
  use.options.some(({ name }) => PATCHES.has(name)) ? [...shownFiles(use), ...tracedFiles(use)] : [];

const PATCHES = new Set(
  `-p -u -U -c -m -W -L --patch --unified --function-context --patch-with-raw --patch-with-stat --binary --cc --dd
  --remerge-diff --diff-merges --word-diff --word-diff-regex --color-words`.split(/\s+/),
);

/** `-L 1,20:file`, `-L :function:file`. */
const tracedFiles = (use: Use): readonly Found[] =>
  use.options.flatMap(({ name, value }: GivenOption) => {
    if (name !== "-L" || value === null) return [];
    const path = value.value.slice(value.value.lastIndexOf(":") + 1);
    return [{ kind: "read", path: use.place({ ...value, value: path }), span: value.span } as const];
  });

/** `grep`: the first operand is the pattern, unless an option gave it. */
export function searchedFiles(use: Use): readonly Found[] {
  const given = use.options.some(({ name }) => name === "-e" || name === "-f");
  return readsOf(use.operands.slice(given ? 0 : 1), use);
}

function readsOf(operands: readonly Arg[], use: Use): readonly Found[] {
  return operands.flatMap((arg) => {
    const path = pathIn(arg.value);
    return path === null
      ? []
      : [{ kind: "read", path: use.place({ ...arg, value: path }), span: arg.span } as const];
  });
}

/** The path in a pathspec or in `revision:path`; null for what only leaves paths out. */
export function pathIn(value: string): string | null {
  if (/^:[!^]/.test(value)) return null;
  if (value.startsWith(":(")) {
    const close = value.indexOf(")");
    return value.slice(0, close + 1).includes("exclude") ? null : `./${value.slice(close + 1)}`;
  }
  // From the top, or a search in messages: never a path from the root of the system.
  if (value.startsWith(":/")) return `./${value.slice(2)}`;
  const colon = colonOf(value);
  return colon === -1 ? value : value.slice(colon + 1).replace(/^[0-3]:/, "");
}

/** The colon after a revision; those in `@{10:00}` are none. */
function colonOf(value: string): number {
  let open = false;
  for (let at = 0; at < value.length; at += 1) {
    const letter = value.charAt(at);
    if (letter === "{") open = true;
    else if (letter === "}") open = false;
    else if (letter === ":" && !open) return at;
  }
  return value.lastIndexOf(":");
}
