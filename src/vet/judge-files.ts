import type { VetStep } from "../core/behaviour.ts";
import type { Handoff } from "../core/run-record.ts";
import { isDependencies, lastName, protectedIn } from "../core/file-names.ts";
import type { ActFindings, PathAct, SeenChains } from "./act-rules.ts";

/** What the policy's tables say about a path. */
interface PlaceSeen {
  readonly kind: string;
  /** Why a read there may show a password or a key. */
  readonly secret: string | null;
  /** Why the host runs or obeys a file that is written there. */
  readonly trap: string | null;
}

export interface AroundActs {
  /** Absolute. */
  readonly workspace: string;
  readonly home: string;
  readonly placeOf: (path: string, op: "read" | "write") => PlaceSeen;
  /** Why the host runs or obeys a path of the repository. */
  readonly obeys: (path: string) => Handoff | undefined;
}

interface Judging {
  readonly around: AroundActs;
  readonly what: VetStep["what"];
  readonly chains: SeenChains;
  readonly found: ActFindings;
}

export function judgeFile(act: PathAct, judging: Judging): void {
  const { around } = judging;
  if (judgeSpecialPath(act, judging)) return;
  const inTree = belowOf(around.workspace, act.path);
  const reads = act.kind === "read" || act.kind === "run";
  if (inTree !== undefined) {
    if (reads) judgeReadInTree(act, inTree, judging);
    else judgeWriteInTree(act, inTree, judging);
  } else if (act.kind === "read") judgeReadOutside(act, judging);
  else if (act.kind !== "run") judgeWriteOutside(act, judging);
}

function belowOf(folder: string, path: string): string | undefined {
  if (path === folder) return "";
  return path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : undefined;
}

const VERBS: Readonly<Record<PathAct["kind"], string>> = {
  read: "reads",
  write: "writes",
  make: "makes",
  remove: "removes",
  mode: "changes the permissions of",
  run: "runs",
};

const HARMLESS_DEVICE =
  /^\/dev\/(?:null|zero|full|random|urandom|tty|ptmx|console|std(?:in|out|err)|fd(?:\/.*)?|pts(?:\/.*)?|shm(?:\/.*)?|mqueue(?:\/.*)?|log)?$/;
const OWN_PROC = /^\/proc\/(?:self|thread-self)(?:\/|$)/;
/** Settings that programs make for their own processes. */
const OWN_SETTING =
  /^\/proc\/\d+\/(?:task\/\d+\/)?(?:oom_score_adj|oom_adj|comm|timerslack_ns|coredump_filter|setgroups|uid_map|gid_map|loginuid|autogroup|clear_refs|fd\/\d+)$/;
const BOX_SIGNS =
  /^(?:\/\.dockerenv|\/run\/\.containerenv|\/proc\/1\/(?:cgroup|sched|mountinfo|cmdline|comm|status))$|^\/sys\/class\/dmi\/|^\/sys\/firmware\/|^\/sys\/hypervisor/;

/** A program that was put into memory: its descriptor, or the name that the kernel gives it. */
const NO_FILE = /^\/(?:proc\/(?:self|thread-self|\d+)\/fd|dev\/fd)\/\d+$|^\/memfd:/;

/** Judges paths of devices, processes and the kernel; returns true if no other rule applies to the path. */
function judgeSpecialPath(act: PathAct, { found }: Judging): boolean {
  const { path, kind } = act;
  const reads = kind === "read" || kind === "run";
  if (BOX_SIGNS.test(path) && reads) {
    found.add("run.box-check", `reads ${path}`, act);
    return true;
  }
  if (kind === "run" && NO_FILE.test(path)) {
    found.add("run.no-file", `runs ${path}`, act);
    return true;
  }
  if (path.startsWith("/dev/")) {
    if (!HARMLESS_DEVICE.test(path)) found.add("run.device", `${VERBS[kind]} ${path}`, act);
    return true;
  }
  if (path.startsWith("/proc/")) return judgeProcessFile(act, found, reads);
  if (/^\/sys(?:\/|$)/.test(path)) {
    if (!reads && !path.startsWith("/sys/fs/cgroup/")) found.add("run.kernel", `${VERBS[kind]} ${path}`, act);
    return true;
  }
  return false;
}

function judgeProcessFile(act: PathAct, found: ActFindings, reads: boolean): boolean {
  const { path, kind, pid } = act;
  const what = `${VERBS[kind]} ${path}`;
  const own = OWN_PROC.test(path) || path.startsWith(`/proc/${pid}/`);
  if (/^\/proc\/(?:sys\/|sysrq-trigger|acpi\/)/.test(path)) {
    if (!reads) found.add("run.kernel", what, act);
  } else if (path.endsWith("/environ")) {
    if (own) found.add("run.environment", what, act);
    else if (reads)
      found.add(
        "run.tamper",
        `${what}: the environment of another process, which often holds passwords`,
        act,
      );
  } else if (/^\/proc\/[^/]+\/(?:task\/\d+\/)?mem$/.test(path)) {
    if (!own || !reads) found.add("run.tamper", what, act);
  } else if (!reads && !own && !OWN_SETTING.test(path)) found.add("run.tamper", what, act);
  else if (/^\/proc\/1\/(?:fd|fdinfo|root|cwd|exe|map_files|syscall|stack)(?:\/|$)/.test(path))
    found.add("run.tamper", what, act);
  return true;
}

/** Folders in which tests keep false secrets. */
const TEST_FOLDERS = /(?:^|\/)(?:tests?|__tests__|specs?|fixtures?|testdata|examples?|samples?|certs?)\//i;

function judgeReadInTree(act: PathAct, path: string, { around, found }: Judging): void {
  if (act.kind !== "read" || TEST_FOLDERS.test(path) || path.split("/").some(isDependencies)) return;
  const { secret } = around.placeOf(act.path, "read");
  if (secret !== null && !/(?:^|\/)\.npmrc$|(?:^|\/)\.yarnrc\.yml$/.test(path))
    found.add("run.env-file", `reads ${path}: ${secret}`, act, path);
}

const HOOK_TOOLS: ReadonlySet<string> = new Set(
  "husky lefthook pre-commit simple-git-hooks yorkie git-hooks overcommit".split(" "),
);
const GIT: ReadonlySet<string> = new Set(["git"]);
const PACKAGE_TOOLS: ReadonlySet<string> = new Set(
  "npm npm-cli npx npx-cli yarn pnpm bun pip pip3 uv poetry cargo go mvn gradle composer bundle bundler gem corepack node-gyp".split(
    " ",
  ),
);

function judgeWriteInTree(
  act: PathAct,
  path: string,
  { around, chains, found }: Omit<Judging, "what">,
): void {
  const { pid, at, kind } = act;
  const what = `${VERBS[kind]} ${path}`;
  if (path === "") {
    if (kind === "remove") found.add("run.wipe", "removes the repository itself", act);
    return;
  }
  const names = path.split("/");
  if (names[0] === ".git") return judgeGitDirectory(act, names.slice(1), { around, chains, found });
  if (kind === "remove" || names.some(isDependencies)) return;
  // A repository that a test makes for itself.
  if (names.includes(".git")) {
    if (!chains.isTool(pid, at, GIT) && names.includes("hooks")) found.add("run.hooks", what, act, path);
    return;
  }
  judgeObeyed(act, { path, names, what }, { around, chains, found });
}

interface InTree {
  readonly path: string;
  readonly names: readonly string[];
  readonly what: string;
}

/** Files that say how the repository is installed, built or tested. */
const MANIFESTS =
  /^(?:package\.json|[Mm]akefile|GNUmakefile|setup\.(?:py|cfg)|pyproject\.toml|build\.rs|conftest\.py|.*\.pth|(?:site|user)customize\.py|\.npmrc|\.yarnrc(?:\.yml)?|Cargo\.toml|pom\.xml|composer\.json)$/;

/**
 * Whether a makefile was generated by a tool such as configure or cmake; what the makefile runs is observed as well.
 */
const isConfigured = (path: string, chain: readonly string[]): boolean =>
  /(?:^|\/)(?:GNUm|[Mm])akefile(?:\.in)?$/.test(path) &&
  chain.some((each) =>
    /(?:^|[\s/])(?:configure|config\.status|autogen\.sh|bootstrap(?:\.sh)?|autoreconf|automake|cmake|meson|qmake\d?|Makefile\.PL|extconf\.rb)(?:\s|$)/.test(
      each,
    ),
  );

function judgeObeyed(
  act: PathAct,
  { path, names, what }: InTree,
  { around, chains, found }: Omit<Judging, "what">,
): void {
  const { pid, at } = act;
  const guarded = protectedIn(names);
  if (guarded !== undefined) {
    const isHook = names.includes(".husky") || names.includes(".githooks");
    if (isHook && chains.isUnder(pid, at, HOOK_TOOLS)) found.add("run.hooks-tool", what, act, path);
    else found.add(isHook ? "run.hooks" : "run.obeyed", `${what}: ${guarded.why}`, act, path);
    return;
  }
  const later = around.obeys(path);
  if (later === undefined) return;
  const own = names.length <= 2 && MANIFESTS.test(names.at(-1) ?? "");
  if (later.tier === "dangerous" || /agents follow it|forge runs it/.test(later.reason))
    found.add("run.obeyed-later", `${what}: ${later.reason}`, act, path);
  else if (own && !chains.isTool(pid, at, PACKAGE_TOOLS) && !isConfigured(path, chains.of(pid, at)))
    found.add("run.manifest", `${what}: ${later.reason}`, act, path);
}

function judgeGitDirectory(
  act: PathAct,
  names: readonly string[],
  { chains, found }: Omit<Judging, "what">,
): void {
  const { pid, at, kind } = act;
  const path = [".git", ...names].join("/");
  const what = `${VERBS[kind]} ${path}`;
  const [first = "", second = ""] = names;
  if (first === "hooks" && !second.endsWith(".sample") && second !== "" && kind !== "remove") {
    const rule = chains.isUnder(pid, at, HOOK_TOOLS) ? "run.hooks-tool" : "run.hooks";
    found.add(rule, what, act, path);
  } else if (!chains.isTool(pid, at, GIT)) found.add("run.git-settings", what, act, path);
  else if (/^(?:config|config\.lock|config\.worktree|info\/attributes)$/.test(names.join("/")))
    found.add(chains.isUnder(pid, at, HOOK_TOOLS) ? "run.hooks-tool" : "run.git-settings", what, act, path);
}

/** The tools that tokens or settings belong to. */
const OWNERS: readonly (readonly [path: RegExp, tools: ReadonlySet<string>])[] = [
  [
    /\/\.(?:npmrc|yarnrc\.yml)$/,
    new Set("npm npm-cli npx npx-cli yarn yarnpkg pnpm bun corepack node-gyp".split(" ")),
  ],
  [/\/\.(?:pypirc|netrc)$/, new Set("pip pip3 uv poetry twine git curl wget go".split(" "))],
  [/\/\.cargo\//, new Set(["cargo"])],
  [/\/\.(?:composer|config\/composer)\//, new Set(["composer"])],
  [/\/\.m2\//, new Set(["mvn", "java"])],
  [/\/\.gradle\//, new Set(["gradle", "java"])],
  [/\/\.(?:bundle|gem)\//, new Set("bundle bundler gem ruby".split(" "))],
  [/\/\.(?:git-credentials|config\/git\/)/, GIT],
  [/\/\.docker\//, new Set(["docker"])],
  [/\/\.ssh\//, new Set("ssh scp sftp ssh-keygen".split(" "))],
];

const WALLETS =
  /^\.(?:bitcoin|ethereum|electrum|monero|litecoin|dogecoin|zcash|config\/solana|config\/sui|near-credentials|exodus|config\/exodus|config\/atomic|config\/ledger live)(?:\/|$)/i;
const HOMES = /^\/(?:home|root|Users|home\/[^/]+|Users\/[^/]+)$/;

/**
 * Python's libraries look for a password here before they reach a host; code that only installs or builds reaches none
 * by itself.
 */
const isReadByPythonLibrary = ({ path, pid, at }: PathAct, { what, chains }: Judging): boolean => {
  if (!/\/\.(?:pypirc|netrc)$/.test(path)) return false;
  const [program = "", option, module] = chains.at(pid, at)?.words ?? [];
  if (!/^python[\d.]*$/.test(lastName(program))) return false;
  return what === "test" || what === "given" || (option === "-m" && module === "pip");
};

function judgeReadOutside(act: PathAct, judging: Judging): void {
  const { around, chains, found } = judging;
  const { path, pid, at } = act;
  const inHome = belowOf(around.home, path);
  if (path === "/" || inHome === "" || HOMES.test(path)) {
    found.add("run.search", `lists ${path}`, act);
    return;
  }
  const { secret, kind } = around.placeOf(path, "read");
  if (kind === "temp" || isCached(inHome)) return;
  if (inHome !== undefined && WALLETS.test(inHome)) {
    found.add("run.secret", `reads ${path}: a wallet`, act, path);
    return;
  }
  if (secret === null) return;
  const owner = OWNERS.find(([form]) => form.test(path));
  if ((owner !== undefined && chains.isTool(pid, at, owner[1])) || isReadByPythonLibrary(act, judging))
    return;
  const isToken = /registry|hosts/.test(secret);
  found.add(isToken ? "run.token" : "run.secret", `reads ${path}: ${secret}`, act, path);
}

/** Caches and settings that tools keep for themselves below a home folder. */
const CACHES =
  /^(?:\.cache|\.npm|\.node-gyp|\.yarn|\.pnpm-store|\.bun\/install|\.local\/share\/(?:pnpm|uv|virtualenv|pypoetry|yarn|composer|NuGet|gem)|\.local\/state\/(?!harness)|\.cargo\/(?:registry|git|\.package-cache[\w-]*|\.global-cache[\w-]*|bin\/\.none)|\.rustup\/(?:tmp|downloads)|go\/pkg|\.m2\/(?:repository|wrapper)|\.gradle\/(?:caches|daemon|wrapper|native|notifications|jdks|workers|kotlin-profile|\.tmp|undefined-build|android)|\.konan|\.kotlin|\.ivy2|\.sbt|\.nuget|\.composer\/cache|\.config\/composer\/cache|\.bundle\/cache|\.gem\/(?:specs|ruby)|\.ccache|\.config\/(?:configstore|yarn|go\/telemetry|go\/env|Cypress|nextjs-nodejs|turborepo|astro|gatsby|matplotlib)|\.eslintcache|\.java|\.pki|\.dotnet|\.templateengine|\.pytest_cache|\.mypy_cache|\.ipython|\.jupyter|\.matplotlib|\.keras|\.nv|\.electron|\.babel\.json|\.v8flags[\w.-]*|\.vite|\.swc|\.angular|\.nx|\.terraform\.d\/plugin-cache|\.zig|\.stack|\.cabal|\.hex|\.mix|\.opam|\.cpan(?:m|plus)?|\.texlive\d*|\.fontconfig|\.dbus|\.DS_Store)(?:\/|$)/;

const isCached = (inHome: string | undefined): boolean => inHome !== undefined && CACHES.test(inHome);

const PATH_FOLDER = /^(?:\/usr(?:\/local)?)?\/s?bin(?:\/|$)/;
const USUAL_TOOLS: ReadonlySet<string> = new Set(
  "sudo su ssh scp git ls cat ps top curl wget bash sh zsh node npm npx python python3 pip pip3 cargo go docker kubectl gpg login passwd env".split(
    " ",
  ),
);
const TOOL_ROW = /^a package manager|^a tool obeys it for every user|^a language loads|^a version manager/;

function judgeWriteOutside(act: PathAct, judging: Judging): void {
  const { around, found } = judging;
  const { path, kind } = act;
  const inHome = belowOf(around.home, path);
  const what = `${VERBS[kind]} ${path}`;
  if (kind === "remove") return judgeRemoveOutside(act, inHome, judging);
  if (/(?:^|\/)__pycache__(?:\/|$)|\.pyc(?:\.\d+)?$/.test(path) || inHome === "") return;
  const { trap, kind: place } = around.placeOf(path.replace(/\.lock$/, ""), "write");
  if (place === "temp" || isCached(inHome) || isCached(inHome?.replace(/\/[^/]*$/, ""))) return;
  if (path === "/etc/ld.so.preload") found.add("run.tamper", `${what}: every program loads it`, act);
  else if (trap !== null) judgeTrap(act, { trap, what, inHome }, judging);
  else if (PATH_FOLDER.test(path)) judgePathProgram(act, what, found);
  else if (inHome === undefined) found.add("run.outside-write", what, act, path);
  else if (isParentOfCaches(inHome)) return;
  else if (inHome.startsWith(".")) found.add("run.home-files", what, act, path);
  else found.add("run.outside-write", what, act, path);
}

/** Folders that tools make on the way to their caches. */
const isParentOfCaches = (inHome: string): boolean =>
  /^(?:\.config|\.local|\.local\/(?:share|state)|go|\.cargo|\.m2|\.gradle|\.composer|\.config\/composer|\.bundle|\.gem|\.rustup)$/.test(
    inHome,
  );

interface Trapped {
  readonly trap: string;
  readonly what: string;
  readonly inHome: string | undefined;
}

function judgeTrap(act: PathAct, { trap, what, inHome }: Trapped, judging: Judging): void {
  const { chains, found } = judging;
  const { path, pid, at } = act;
  const text = `${what}: ${trap}`;
  if (trap.startsWith("programs that the shell finds")) judgePathProgram(act, text, found);
  else if (inHome !== undefined && isParentOfCaches(inHome)) return;
  else if (/\.pth$|(?:site|user)customize\.py$/.test(path)) found.add("run.persistence", text, act, path);
  else if (TOOL_ROW.test(trap)) {
    const own = chains.isTool(pid, at, PACKAGE_TOOLS);
    const settings = /(?:rc|\.toml|\.conf|\.xml|\.ya?ml|\.properties|init\.d\/.*|init\.gradle|\/env)$/.test(
      path,
    );
    if (!own || settings) found.add("run.tool-settings", text, act, path);
  } else if (/\/\.gitconfig(?:\.lock)?$/.test(path) && chains.isTool(pid, at, GIT))
    judgeGitconfig(act, text, judging);
  else if (
    trap.startsWith("a tool obeys it: commands") &&
    !/\/\.(?:docker|kube|aws|curlrc|gdbinit)/.test(path)
  )
    found.add("run.tool-settings", text, act, path);
  else found.add("run.persistence", text, act, path);
}

const HARMLESS_KEY =
  /^(?:user\.\w+|init\.defaultbranch|safe\.directory|core\.(?:autocrlf|eol|quotepath|longpaths|symlinks|filemode)|advice\.\w+|commit\.gpgsign|tag\.gpgsign|protocol\.file\.allow|color\.\w+|pull\.\w+|gc\.auto)$/i;

/** Tests often tell git who they are. */
function judgeGitconfig(act: PathAct, text: string, { chains, found }: Judging): void {
  const words = chains.at(act.pid, act.at)?.words ?? [];
  const key = words.slice(2).find((word) => !word.startsWith("-") && word.includes(".")) ?? "";
  found.add(
    HARMLESS_KEY.test(key) ? "run.tool-settings" : "run.persistence",
    `${text} (${key})`,
    act,
    act.path,
  );
}

function judgePathProgram(act: PathAct, what: string, found: ActFindings): void {
  const name = lastName(act.path);
  found.add(USUAL_TOOLS.has(name) ? "run.path-tool" : "run.path-program", what, act, act.path);
}

const WHOLE_FOLDERS =
  /^\/(?:bin|boot|dev|etc|home|lib|lib64|media|mnt|opt|root|run|sbin|srv|sys|usr|var|home\/[^/]+|usr\/\w+|var\/\w+)?$/;

function judgeRemoveOutside(act: PathAct, inHome: string | undefined, { around, found }: Judging): void {
  const { path } = act;
  if (WHOLE_FOLDERS.test(path) || inHome === "") {
    found.add("run.wipe", `removes ${path}`, act);
    return;
  }
  const { trap, kind } = around.placeOf(path, "write");
  if (kind === "temp" || isCached(inHome) || /__pycache__|\.pyc(?:\.\d+)?$/.test(path)) return;
  if (trap === null && inHome?.startsWith(".") === true) return;
  found.add("run.outside-remove", `removes ${path}${trap === null ? "" : `: ${trap}`}`, act, path);
}
