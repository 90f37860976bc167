/** Variables that change what programs print, and nothing that they do. */
const INERT = new Set(
  `CI NODE_ENV FORCE_COLOR NO_COLOR CLICOLOR CLICOLOR_FORCE COLORTERM TERM COLUMNS LINES LANG LANGUAGE LC_ALL LC_CTYPE LC_COLLATE
  LC_MESSAGES LC_NUMERIC LC_TIME TZ RUST_BACKTRACE RUST_LOG PYTHONDONTWRITEBYTECODE PYTHONUNBUFFERED PYTHONHASHSEED
  PYTHONWARNINGS DEBUG VERBOSE CGO_ENABLED GOOS GOARCH GOARM GIT_OPTIONAL_LOCKS GIT_TERMINAL_PROMPT BLOCKSIZE BLOCK_SIZE
  POSIXLY_CORRECT SOURCE_DATE_EPOCH NO_UPDATE_NOTIFIER ADBLOCK DISABLE_OPENCOLLECTIVE HUSKY TAP_COLORS npm_config_loglevel
  APP_ENV RAILS_ENV RACK_ENV FLASK_ENV TEST_ENV JEST_WORKER_ID PYTEST_DISABLE_PLUGIN_AUTOLOAD TSC_WATCHFILE
  CARGO_TERM_COLOR CARGO_INCREMENTAL GOTRACEBACK GOGC GOMAXPROCS OMP_NUM_THREADS UV_THREADPOOL_SIZE`.split(
    /\s+/,
  ),
);
/** Those that name a pager, when they name one that only prints. */
const PAGERS = new Set(["PAGER", "GIT_PAGER", "MANPAGER", "SYSTEMD_PAGER", "BAT_PAGER", "DELTA_PAGER"]);

/** Before a command: it gets the variable. */
export function isInert(name: string, value: string | null): boolean {
  if (PAGERS.has(name)) return value === "cat" || value === "";
  // and the like only choose; what is loaded by name would be code.
  return INERT.has(name);
}

/** A shell variable of its own reaches no program, unless its name stands in the environment already. */
export const isPrivate = (name: string): boolean =>
  /^[a-z_][a-z0-9_]*$/.test(name) && !/^(npm_|_$)/.test(name);

/** Names that tell a program, a loader or a shell what to run. */
const DECIDING =
  /^(?:PATH|SHELL|ENV|BASH_ENV|IFS|PS[0-4]|PROMPT_COMMAND|CDPATH|GLOBIGNORE|SHELLOPTS|BASHOPTS|HOME|PWD|EDITOR|VISUAL|BROWSER|PAGER|CC|CXX|LD|AR|AS|MAKE|LANG_PATH|CLASSPATH|GCONV_PATH|LOCPATH|NLSPATH|HOSTALIASES|TERMCAP|TERMINFO|DISPLAY)$|^(?:LD|DYLD|GIT|SSH|NODE|NPM|npm|YARN|PNPM|BUN|DENO|PYTHON|PIP|UV|PERL|RUBY|GEM|BUNDLE|JAVA|JDK|MAVEN|GRADLE|PHP|LUA|CARGO|RUST|GO|MAKE|CMAKE|DOCKER|KUBE|AWS|HTTP|HTTPS|FTP|ALL|NO|http|https|ftp|all|no|CURL|WGET|LESS|MAN|GREP|RIPGREP|FZF|BAT|TAR|ZIP|GZIP|XZ|BASH|ZSH|HIST|XDG|HARNESS|DBUS|GTK|QT|ELECTRON|PUPPETEER|PLAYWRIGHT)_?\w*|OPT(?:ION)?S$|FLAGS$|PRELOAD|WRAPPER|_CMD$|COMMAND/;

export const variableDoubt = (name: string): "env.unknown" | "env.own" =>
  DECIDING.test(name) ? "env.unknown" : "env.own";
