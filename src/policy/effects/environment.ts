import { isInside, resolvePath } from "../paths/normal-path.ts";
import { isSystem, isTemp } from "../paths/system-paths.ts";
import type { Place } from "./effect.ts";

/** Where a process's variables can be read; they often hold keys and passwords. */
export const ENVIRONMENT = "/proc/self/environ";

const SECRET =
  /key|token|secret|pass|\wpwd$|pwd_|(?:^|_)(?:pat|jwt|sas|pin)(?:_|$)|webhook|private|cred|auth|cookie|session|dsn|_url$|_uri$|connection/i;

/** A variable whose name says that it is one to keep. */
export const namesSecret = (name: string): boolean => SECRET.test(name);

/** The same, of a name as programs find it in their environment; others are mostly the script's own. */
export const exportsSecret = (name: string): boolean =>
  /^[A-Z][A-Z0-9_]*$/.test(name) && SECRET.test(name) && name !== "OLDPWD";

/** Variables that change what programs print, and nothing that they do. */
const INERT = new Set(
  `CI NODE_ENV FORCE_COLOR NO_COLOR CLICOLOR CLICOLOR_FORCE COLORTERM TERM COLUMNS LINES LANG LANGUAGE LC_ALL LC_CTYPE
  LC_COLLATE LC_MESSAGES LC_NUMERIC LC_TIME TZ RUST_BACKTRACE RUST_LOG PYTHONDONTWRITEBYTECODE PYTHONUNBUFFERED
  PYTHONHASHSEED DEBUG VERBOSE CGO_ENABLED GOOS GOARCH GOARM GIT_OPTIONAL_LOCKS GIT_TERMINAL_PROMPT BLOCKSIZE BLOCK_SIZE
  SOURCE_DATE_EPOCH NO_UPDATE_NOTIFIER ADBLOCK DISABLE_OPENCOLLECTIVE HUSKY TAP_COLORS
  npm_config_loglevel APP_ENV RAILS_ENV RACK_ENV FLASK_ENV TEST_ENV JEST_WORKER_ID PYTEST_DISABLE_PLUGIN_AUTOLOAD
  CARGO_TERM_COLOR CARGO_INCREMENTAL GOTRACEBACK GOGC GOMAXPROCS OMP_NUM_THREADS UV_THREADPOOL_SIZE`.split(
    /\s+/,
  ),
);
/** Those that name a pager, when they name one that only prints. */
const PAGERS = new Set(["PAGER", "GIT_PAGER", "MANPAGER", "SYSTEMD_PAGER", "BAT_PAGER", "DELTA_PAGER"]);
/** Those that name a file when they begin like one. */
const FILES = /^(?:TZ|LC_\w+|LANG|LANGUAGE|TERM)$/;

/** Before a command: it gets the variable. A value that is not known may be anything, but runs nothing either. */
export function isInert(name: string, value: string | null): boolean {
  if (PAGERS.has(name)) return value === "cat" || value === "";
  if (!INERT.has(name)) return false;
  return value === null || !FILES.test(name) || !/^[:/.~]|\.\./.test(value);
}

/** A shell variable of its own reaches no program, unless its name stands in the environment already. */
export const isPrivate = (name: string): boolean =>
  /^[a-z_][a-z0-9_]*$/.test(name) && !/^npm_|_proxy$|^_$/.test(name);

/** Names that tell a program, a loader or a shell what to run, or where from. */
const DECIDING_NAMES = new Set(
  `PATH SHELL ENV IFS PS0 PS1 PS2 PS3 PS4 PROMPT_COMMAND CDPATH GLOBIGNORE SHELLOPTS BASHOPTS HOME PWD OLDPWD EDITOR VISUAL
  BROWSER PAGER CC CXX LD AR AS CLASSPATH GCONV_PATH LOCPATH NLSPATH HOSTALIASES RES_OPTIONS TERMCAP TERMINFO DISPLAY
  TMPDIR POSIXLY_CORRECT`.split(/\s+/),
);
/** The same by how they begin: all variables of these programs. */
const DECIDING_FAMILIES =
  /^(?:LD|DYLD|GIT|SSH|NODE|NPM|npm|YARN|PNPM|BUN|DENO|PYTHON|PIP|UV|PERL|RUBY|GEM|BUNDLE|JAVA|JDK|MAVEN|GRADLE|PHP|LUA|CARGO|RUST|GO|MAKE|CMAKE|DOCKER|KUBE|AWS|CURL|WGET|LESS|MAN|GREP|RIPGREP|FZF|BAT|TAR|ZIP|GZIP|XZ|BASH|ZSH|HIST|XDG|HARNESS|DBUS|ELECTRON|PUPPETEER|PLAYWRIGHT)/;
const DECIDING_ENDS = /OPT(?:ION)?S$|FLAGS$|PRELOAD|WRAPPER|_CMD$|COMMAND|_proxy$|_PROXY$/;

/** `env.own`: only the program that it is for knows it, and that is no program known to run what it says. */
export const variableDoubt = (name: string): "env.unknown" | "env.own" =>
  DECIDING_NAMES.has(name) || DECIDING_FAMILIES.test(name) || DECIDING_ENDS.test(name)
    ? "env.unknown"
    : "env.own";

/** Where a path of a value lies; null for one that is not known. */
type Lies = (path: string) => "inside" | "system" | null;

/** Folders that programs, modules or libraries are taken from. */
const LISTS = new Set(
  `PATH PYTHONPATH MYPYPATH NODE_PATH LD_LIBRARY_PATH LD_RUN_PATH LIBRARY_PATH CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH
  PKG_CONFIG_PATH CMAKE_PREFIX_PATH CMAKE_MODULE_PATH CLASSPATH RUBYLIB PERL5LIB GOPATH MANPATH`.split(/\s+/),
);
/** What a program writes or installs into. */
const FOLDERS = new Set(
  `TMPDIR GOCACHE GOMODCACHE GOTMPDIR GOBIN CARGO_TARGET_DIR CARGO_HOME GRADLE_USER_HOME npm_config_cache NPM_CONFIG_CACHE
  PIP_CACHE_DIR UV_CACHE_DIR PYTHONPYCACHEPREFIX PYTHONUSERBASE XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME
  XDG_RUNTIME_DIR YARN_CACHE_FOLDER BUNDLE_PATH BUNDLE_GEMFILE GEM_HOME GEM_PATH HOME`.split(/\s+/),
);
/** Where a language of the system lies. */
const RELEASES = new Set(["JAVA_HOME", "GOROOT", "JDK_HOME"]);

const SWITCH = /^(?:[01]|on|off|auto|true|false|yes|no|y|n)?$/i;
const PLAIN = /^[\w.:,+-]*$/;
const COMPILERS =
  /^(?:\/usr\/(?:local\/)?bin\/)?(?:gcc|g\+\+|cc|c\+\+|clang|clang\+\+|gfortran|ld|ld\.lld|lld|gold|mold|ar|as)(?:-\d+)?$/;

/** The form of a value that only says how much, how strict or how loud. */
const FORMS: readonly (readonly [names: RegExp, form: RegExp])[] = [
  [
    /^PYTHON(?:WARNINGS|IOENCODING|FAULTHANDLER|UTF8|OPTIMIZE|NOUSERSITE|SAFEPATH|ASYNCIODEBUG|TRACEMALLOC|DEVMODE|VERBOSE|MALLOC)$/,
    PLAIN,
  ],
  [/^PYTHONBREAKPOINT$/, /^0?$/],
  [/^GO(?:111MODULE|TRACEBACK|EXPERIMENT|AMD64|386)$/, PLAIN],
  [/^GO(?:PROXY|SUMDB|WORK|TOOLCHAIN|VCS)$/, /^(?:off|local)$/],
  [/^GODEBUG$/, /^[\w=,]*$/],
  [/^CARGO_(?:NET_OFFLINE|BUILD_JOBS|TERM_\w+|PROFILE_\w+)$/, /^\w*$/],
  [/^CMAKE_(?:BUILD_TYPE|BUILD_PARALLEL_LEVEL|GENERATOR)$/, /^[\w ]*$/],
  [/^(?:CC|CXX|LD|AR|AS|FC)$/, COMPILERS],
  [/^(?:A|UB|L|T|M)SAN_OPTIONS$/, /^(?:\w+=[\w.]*(?::|$))*$/],
  [/^(?:GIT_EDITOR|GIT_SEQUENCE_EDITOR|EDITOR|VISUAL)$/, /^(?:true|:|cat)$/],
  [/^GIT_(?:CONFIG_NOSYSTEM|MERGE_AUTOEDIT)$/, SWITCH],
  [/^(?:PIP|UV|YARN|BUN|PUPPETEER|PLAYWRIGHT)_(?:NO_\w+|DISABLE_\w+|SKIP_\w+|OFFLINE|FROZEN|QUIET)$/, SWITCH],
  [/^(?:npm|NPM)_(?:config|CONFIG)_(?:offline|audit|fund|progress|yes|color|OFFLINE|AUDIT|FUND)$/, SWITCH],
  [/^BUNDLE_(?:FROZEN|WITHOUT|WITH|JOBS)$/, PLAIN],
  [/^(?:HISTFILE|GIT_CONFIG_GLOBAL|GIT_CONFIG_SYSTEM)$/, /^\/dev\/null$/],
  [/^LESS$/, /^-?\w*$/],
  [/^DISPLAY$/, /^:\d+$/],
];

const COMPILE =
  /^(?:-O\w?|-g[\w-]*|-W(?![lpa],)[\w+=-]*|-f(?!plugin|profile-use=|wrapper)[\w+=,-]*|-m[\w=.+-]+|-std=[\w+:]+|-D\w+(?:=[\w.]*)?|-U\w+|-l[\w.+-]+|-pthread|-pipe|-w|-static(?:-lib\w+)?|-shared|-pedantic(?:-errors)?|-ansi|-rdynamic|-s)$/;
const JAVA =
  /^(?:-Xm[snx]\d+[kmgKMG]?|-Xss\d+[kmgKMG]?|-ea|-server|-XX:[+-](?:Use\w+|HeapDumpOnOutOfMemoryError|ExitOnOutOfMemoryError|TieredCompilation)|-XX:(?:Max|Initial|Reserved|Tiered|Active)\w+=[\w.]+|-D(?:org\.gradle\.(?:daemon|parallel|caching|workers\.max)|file\.encoding|user\.(?:language|country|timezone)|java\.awt\.headless|maven\.test\.[\w.]+|style\.color|skipTests)(?:=[\w.-]*)?)$/;

/** The form of each word of a value that holds options. A group in it is a path. */
const WORDS: readonly (readonly [names: RegExp, word: RegExp])[] = [
  [/^(?:C|CXX|CPP|F|LD)FLAGS$|^LDLIBS$/, COMPILE],
  [/^(?:C|CXX|CPP|F|LD)FLAGS$|^LDLIBS$/, /^-[IL](.+)$/],
  [/^MAKEFLAGS$/, /^(?:-j\d*|-[skBi]|--no-print-directory|--output-sync)$/],
  [
    /^GOFLAGS$/,
    /^-(?:mod=(?:vendor|mod|readonly)|count=\d+|race|v|short|trimpath|json|cover|vet=off|tags=[\w,]+|p=\d+|timeout=\w+|buildvcs=\w+)$/,
  ],
  [
    /^RUST(?:DOC)?FLAGS$/,
    /^(?:-[DWAF]\w*|-g|-C|(?:-C)?(?:target-cpu|target-feature|opt-level|debuginfo|debug-assertions|overflow-checks|codegen-units|lto|panic|instrument-coverage|strip)(?:=[\w+,.-]*)?|--cfg=?\w*|[a-z_]+(?:::[a-z_]+)?)$/,
  ],
  [
    /^PYTEST_ADDOPTS$/,
    /^(?:-[qvxslf]+|--tb=\w+|--maxfail=\d+|--color=\w+|--no-header|--disable-warnings|--durations=\d+|--strict-\w+|--lf|--ff|-rA|-p|no:\w+|-n|\d+)$/,
  ],
  [
    /^NODE_OPTIONS$/,
    /^--(?:max[_-]old[_-]space[_-]size=\d+|max-semi-space-size=\d+|stack-trace-limit=\d+|experimental-(?!loader|config|default)[\w-]+|no-[\w-]+|trace-[\w-]+|enable-source-maps|openssl-legacy-provider|unhandled-rejections=\w+|dns-result-order=\w+|pending-deprecation|throw-deprecation)$/,
  ],
  [/^NODE_OPTIONS$/, /^--(?:import|require|loader|experimental-loader)=(.+)$/],
  [/^(?:JAVA|GRADLE|MAVEN|SBT|_JAVA|JAVA_TOOL|JDK_JAVA)_(?:OPTS|OPTIONS)$/, JAVA],
  [/^RUBYOPT$/, /^(?:-W[\w:-]*|-w|--yjit)$/],
  [/^RUBYOPT$/, /^-I(.+)$/],
];

/** With this value a variable that decides what runs lets only code of the workspace, its box and its system run. */
function isTameValue(name: string, value: string, lies: Lies): boolean {
  const near = (path: string): boolean => lies(path) !== null;
  if (LISTS.has(name)) return value.split(":").every((path) => near(path === "" ? "." : path));
  if (FOLDERS.has(name)) return value !== "" && lies(value) === "inside";
  if (RELEASES.has(name)) return value !== "" && near(value);
  if (FORMS.some(([names, form]) => names.test(name) && form.test(value))) return true;
  const shapes = WORDS.filter(([names]) => names.test(name)).map(([, word]) => word);
  const words = value.split(/\s+/).filter((word) => word !== "");
  return shapes.length > 0 && words.every((word) => shapes.some((shape) => fits(word, shape, near)));
}

function fits(word: string, shape: RegExp, near: (path: string) => boolean): boolean {
  const match = shape.exec(word);
  if (match === null) return false;
  const [, path] = match;
  // A name alone is looked for among the modules of the project.
  return path === undefined || near(path);
}

/** Whatever its value is: only text that is written down, and what `read` alone obeys before a command. */
const ANY = /^(?:IFS|GIT_(?:AUTHOR|COMMITTER)_(?:NAME|EMAIL|DATE))$/;

interface Around {
  readonly folders: readonly Place[];
  readonly workspace: string;
}

/** `NAME=value` before a command, or exported: what runs because of it lies inside. Null: a value that is not known. */
export function isTame(name: string, value: string | null, { folders, workspace }: Around): boolean {
  if (ANY.test(name)) return true;
  if (value === null) return false;
  const lies = (path: string): ReturnType<Lies> => {
    const kinds = new Set(folders.map((folder) => kindOf(path, folder, workspace)));
    if (kinds.has(null)) return null;
    return kinds.has("system") ? "system" : "inside";
  };
  return isTameValue(name, value, lies);
}

function kindOf(path: string, folder: Place, workspace: string): ReturnType<Lies> {
  if (folder === null && !path.startsWith("/")) return null;
  const at = resolvePath(folder ?? "/", path);
  if (isInside(workspace, at) || isTemp(at)) return "inside";
  return isSystem(at) ? "system" : null;
}
