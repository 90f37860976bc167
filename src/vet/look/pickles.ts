import type { LookedAtFile } from "./looked-at-file.ts";
import type { Found } from "./rules.ts";

/**
 * Looks at data that Python unpickles: loading it calls what it names. Nothing of it is loaded, only its names are
 * read.
 */

/** Calls that start a program, run a text or touch files, by module; a star stands for all calls of a module. */
const CALLS: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  Object.entries({
    os: "system popen execv execve execl execlp execvp spawnv spawnl spawnlp posix_spawn fork remove unlink rmdir removedirs putenv startfile",
    subprocess: "*",
    _posixsubprocess: "*",
    commands: "*",
    pty: "spawn",
    builtins: "eval exec compile __import__ open execfile",
    runpy: "*",
    importlib: "import_module __import__",
    socket: "*",
    shutil: "rmtree move copy copyfile",
    webbrowser: "open",
    ctypes: "*",
    code: "*",
    timeit: "timeit repeat",
    pdb: "run runeval",
    bdb: "*",
    cProfile: "run runctx",
    profile: "run runctx",
    "asyncio.subprocess": "*",
    "multiprocessing.util": "spawnv_passfds",
    "urllib.request": "urlopen urlretrieve",
    requests: "*",
    "requests.api": "*",
    "http.client": "*",
    pip: "main",
    "pip._internal": "main",
    "distutils.spawn": "spawn",
    "setuptools.sandbox": "*",
  }).map(([module, names]) => [module, new Set(names.split(" "))]),
);
/** Other names of the same modules. */
const ALSO: Readonly<Record<string, string>> = {
  posix: "os",
  nt: "os",
  __builtin__: "builtins",
  __builtins__: "builtins",
  _socket: "socket",
};

const ENDING = /\.(?:pkl|pickle|p|pt|pth|ckpt|joblib|dill|cloudpickle|sav|npy|bin|model|data|dat|cache)$/;
const NAMED = /[ci]([\w.]{1,60})\n([\w.]{1,60})\n/g;
/** Two short texts, each perhaps memoised, then the code that looks up the second in the first. */
const STACKED = /[\x8cUT]\W?([\w.]{1,60}?)(?:\x94|q.)?[\x8cU][^]([\w.]{1,60}?)(?:\x94|q.)?\x93/g;
/** Folders in which tests of such readers keep data that they refuse. */
const TRIED = /(?:^|\/)(?:fixtures?|__fixtures__|tests?|testdata|test-data|corpus)\//i;
/** Most bytes of one file that are looked at. */
const MAX_BYTES = 8 * 2 ** 20;

export function lookAtPickle({ path, ending, bytes }: LookedAtFile, found: Found): void {
  if (!isMarked(bytes) && !ENDING.test(ending)) return;
  const call = callIn(bytes.toString("latin1", 0, MAX_BYTES));
  if (call === undefined) return;
  found.add(TRIED.test(path) ? "binary.pickle-tried" : "binary.pickle", `loading it calls ${call}`, {
    path,
  });
}

const isMarked = ([first, version = 0]: Buffer): boolean => first === 0x80 && version >= 2 && version <= 5;

/** The first such call among the names. Archives hold the data as it is. */
function callIn(data: string): string | undefined {
  for (const form of [NAMED, STACKED])
    for (const [, module = "", name = ""] of data.matchAll(form)) {
      const calls = CALLS.get(ALSO[module] ?? module);
      if (calls?.has("*") === true || calls?.has(name) === true) return `${module}.${name}`;
    }
  return undefined;
}
