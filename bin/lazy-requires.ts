import type { Plugin } from "rolldown";

/**
 * Modules that dockerode loads at once but needs in one case only, and that oclif loads for Windows shells, for a flag
 * read from stdin, for reading files and for measuring itself.
 */
const LAZY: readonly (readonly [file: string, loads: string, calls: RegExp])[] = [
  ["@oclif/core/lib/util/os.js", 'require("node:child_process")', /\bnode_child_process_1(?=\.)/g],
  ["@oclif/core/lib/util/fs.js", 'require("node:fs/promises")', /\bpromises_1(?=\.)/g],
  ["@oclif/core/lib/util/read-tsconfig.js", 'require("node:fs/promises")', /\bpromises_1(?=\.)/g],
  ["@oclif/core/lib/parser/parse.js", 'require("node:readline")', /\bnode_readline_1(?=\.)/g],
  ["dockerode/lib/util.js", "require('zlib')", /\bzlib(?=\.)/g],
  ["@oclif/core/lib/performance.js", 'require("node:perf_hooks")', /\bnode_perf_hooks_1(?=\.)/g],
  // Help, the lookup of plugin commands, and line breaking for errors: needed by few commands.
  ["@oclif/core/lib/index.js", 'require("./execute")', /\bexecute_1(?=\.)/g],
  ["@oclif/core/lib/index.js", 'require("./help")', /\bhelp_1(?=\.)/g],
  ["@oclif/core/lib/index.js", 'require("./main")', /\bmain_1(?=\.)/g],
  ["@oclif/core/lib/index.js", 'require("./errors/handle")', /\bhandle_1(?=\.)/g],
  ["@oclif/core/lib/errors/index.js", 'require("./handle")', /\bhandle_1(?=\.)/g],
  ["@oclif/core/lib/flags.js", 'require("./help")', /\bhelp_1(?=\.)/g],
  ["@oclif/core/lib/help/util.js", '__importDefault(require("ejs"))', /\bejs_1(?=\.)/g],
  ["@oclif/core/lib/config/config.js", '__importDefault(require("ejs"))', /\bejs_1(?=\.)/g],
  [
    "@oclif/core/lib/config/config.js",
    '__importDefault(require("./plugin-loader"))',
    /\bplugin_loader_1(?=\.)/g,
  ],
  ["@oclif/core/lib/config/index.js", 'require("./plugin")', /\bplugin_1(?=\.)/g],
  ["@oclif/core/lib/errors/errors/cli.js", '__importDefault(require("wrap-ansi"))', /\bwrap_ansi_1(?=\.)/g],
  [
    "@oclif/core/lib/errors/errors/pretty-print.js",
    '__importDefault(require("wrap-ansi"))',
    /\bwrap_ansi_1(?=\.)/g,
  ],
  ["@oclif/core/lib/ux/list.js", "require('wordwrap')", /\bwordwrap(?=\()/g],
  [
    "@oclif/core/lib/errors/errors/cli.js",
    '__importDefault(require("clean-stack"))',
    /\bclean_stack_1(?=\.)/g,
  ],
  // Colours, debug output, and the lookup of a plugin's sources.
  ["@oclif/core/lib/ux/theme.js", '__importDefault(require("ansis"))', /\bansis_1(?=\.)/g],
  ["@oclif/core/lib/ux/supports-color.js", 'require("supports-color")', /\bsupports_color_1(?=\.)/g],
  ["@oclif/core/lib/logger.js", '__importDefault(require("debug"))', /\bdebug_1(?=\.)/g],
  ["@oclif/core/lib/config/config.js", 'require("./ts-path")', /\bts_path_1(?=\.)/g],
  ["@oclif/core/lib/config/index.js", 'require("./ts-path")', /\bts_path_1(?=\.)/g],
  ["@oclif/core/lib/config/config.js", 'require("../module-loader")', /\bmodule_loader_1(?=\.)/g],
];

/**
 * Code that is removed or replaced. Ollama's client is given a fetch, but still imports a polyfill for old browsers and
 * checks whether its headers are `Headers`: reading that name makes Node load its own fetch, 13 MB, before the first
 * request.
 */
const UNUSED: readonly (readonly [file: string, code: string, instead: string])[] = [
  ["ollama/dist/browser.mjs", "import 'whatwg-fetch';", ""],
  [
    "ollama/dist/browser.mjs",
    "if (headers instanceof Headers)",
    "if (headers !== undefined && headers instanceof Headers)",
  ],
  // Engines behind ssh are reached with the system's own ssh, and nothing is built with BuildKit: saves 0.8 MB that
  // each run would read.
  ["docker-modem/lib/modem.js", "ssh = require('./ssh'),", "ssh = undefined,"],
  ["dockerode/lib/docker.js", "withSession = require('./session'),", "withSession = undefined,"],
  ["dockerode/lib/docker.js", "var buildkit = require('./buildkit');", ""],
  ["dockerode/lib/docker.js", "return buildkit.followProgress(", "return this.modem.followProgress("],
  // Engines are rarely used over TLS, which takes longer to load than HTTP.
  ["docker-modem/lib/http.js", "nativeHttps = require('https'),", ""],
  [
    "docker-modem/lib/http.js",
    "https: nativeHttps",
    "https: { request: (...words) => require('https').request(...words) }",
  ],
  // Nothing here differs on WSL, and detecting WSL takes the modules of three packages.
  ["@oclif/core/lib/util/os.js", "(await import('wsl-utils')).isWsl ? 'wsl' : ", ""],
  // The launcher has checked the Node version; without DEBUG, oclif's debug output is not wanted.
  ["@oclif/core/lib/index.js", "checkNodeVersion();\n", ""],
  [
    "@oclif/core/lib/logger.js",
    "getLogger(namespace).debug(",
    "if (process.env.DEBUG) getLogger(namespace).debug(",
  ],
  // oclif's spinner is never shown here, and nothing loads modules through oclif.
  ["@oclif/core/lib/ux/index.js", "new spinner_1.default()", "new simple_1.default()"],
  ["@oclif/core/lib/ux/index.js", 'const spinner_1 = __importDefault(require("./action/spinner"));', ""],
  ["@oclif/core/lib/index.js", 'exports.ModuleLoader = __importStar(require("./module-loader"));', ""],
  // There are no plugins, and all commands are in the manifest: two packages for matching file names are a third of
  // oclif.
  [
    "@oclif/core/lib/config/plugin.js",
    "(0, tinyglobby_1.glob)(this.commandDiscoveryOpts?.globPatterns ?? GLOB_PATTERNS, { cwd: commandsDir })",
    "[]",
  ],
  ["@oclif/core/lib/config/plugin.js", 'const tinyglobby_1 = require("tinyglobby");', ""],
  ["@oclif/core/lib/config/plugin-loader.js", "(0, minimatch_1.minimatch)(p, w)", "false"],
  ["@oclif/core/lib/config/plugin-loader.js", 'const minimatch_1 = require("minimatch");', ""],
  // A user's DEV variable does not ask for a library's debugger.
  ["ink/build/reconciler.js", "if (process.env['DEV'] === 'true')", "if (false)"],
  // Files of the bundle load synchronously: the chat's layout engine is in its file, and is created on first use.
  ["ink/build/reconciler.js", "await loadPackageJson()", "{}"],
  [
    "yoga-layout/dist/src/index.js",
    "const Yoga = wrapAssembly(await loadYoga());",
    "const made = {};\nloadYoga(made);\nconst Yoga = wrapAssembly(made);",
  ],
  [
    "yoga-layout/dist/binaries/yoga-wasm-base64-esm.js",
    "if(h.instantiateWasm)try{return h.instantiateWasm(d,\na)}",
    "if(true)try{return a(new WebAssembly.Instance(new WebAssembly.Module(wa()),d))}",
  ],
  // Each request is formatted with all its objects for a log that nobody reads: that took longer than the request.
  [
    "docker-modem/lib/modem.js",
    "debug('Sending: %s', util.inspect(options, {\n    showHidden: true,\n    depth: null\n  }));",
    "",
  ],
];

/** Loads these modules where they are used: together they cost twice as much as the rest of a start. */
export const lazyRequires: Plugin = {
  name: "lazy-requires",
  transform(code, id) {
    const within = ([file]: readonly [string, ...unknown[]]): boolean => id.endsWith(`/node_modules/${file}`);
    const changed = UNUSED.filter(within).reduce(without, LAZY.filter(within).reduce(lazily, code));
    return changed === code ? null : changed;
  },
};

function lazily(code: string, [file, loads, calls]: (typeof LAZY)[number]): string {
  const eager = `= ${loads}`;
  const used = code.replace(eager, "= undefined").replaceAll(calls, `(${loads})`);
  if (!code.includes(eager) || used.split(`(${loads})`).length < 2)
    throw new Error(`${file} no longer loads and uses ${loads} as it did: see bin/lazy-requires.ts`);
  return used;
}

function without(code: string, [file, unused, instead]: (typeof UNUSED)[number]): string {
  if (!code.includes(unused)) throw new Error(`${file} no longer has ${unused}: see bin/lazy-requires.ts`);
  return code.replace(unused, instead);
}
