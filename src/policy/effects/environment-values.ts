import { isInside, resolvePath } from "../paths/normal.ts";
import { isSystem, isTemp } from "../paths/system.ts";
import type { Place } from "./effect.ts";

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
