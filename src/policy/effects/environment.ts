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
