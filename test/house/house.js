/**
 * The house rules as an oxlint plugin. The tables are the rule: a folder imports only lower levels,
 * folders of one level never import each other, and a package or module that reaches the outside
 * world belongs to the folders named beside it. Static, type-only, dynamic and re-exporting imports all count.
 */
import fs from "node:fs";
import path from "node:path";

export const LEVELS = {
  core: 0,
  platform: 0,
  boxes: 0.5,
  policy: 1,
  tools: 1,
  models: 1,
  docker: 1,
  kubernetes: 1,
  s3: 1,
  search: 1,
  sessions: 1,
  extensions: 1,
  render: 1,
  telemetry: 1,
  vet: 1,
  agent: 2,
  config: 2,
  app: 3,
  cli: 4,
};

/** Packages and the only folders that may import them. A package that is not listed is an error. */
const PACKAGES = {
  zod: Object.keys(LEVELS),
  "@oclif/core": ["cli"],
  ajv: ["app"],
  dockerode: ["docker"],
  "@kubernetes/client-node": ["kubernetes"],
  diff: ["tools", "sessions"],
  htmlparser2: ["extensions", "s3"],
  "tar-fs": ["docker"],
  "jsonc-parser": ["config", "extensions", "docker", "vet"],
  yaml: ["app"],
  "smol-toml": ["config", "docker", "vet"],
  unbash: ["policy"],
  ollama: ["models"],
  "shell-quote": ["policy", "tools", "models", "boxes", "docker"],
  "web-tree-sitter": ["search"],
  "@vscode/tree-sitter-wasm": ["search"],
  "@qdrant/js-client-rest": ["search"],
  "@modelcontextprotocol/client": ["extensions"],
  "@modelcontextprotocol/server": ["extensions"],
  "@agentclientprotocol/sdk": ["extensions"],
  ink: ["render/tui"],
  react: ["render/tui"],
};

/** Built-in modules that reach files, processes or sockets; every other built-in is free to all but PURE. */
const BUILTINS = {
  fs: [
    "platform",
    "boxes",
    "models",
    "docker",
    "kubernetes",
    "search",
    "sessions",
    "extensions",
    "telemetry",
    "config",
    "app",
    "cli",
  ],
  "fs/promises": [
    "platform",
    "boxes",
    "models",
    "docker",
    "kubernetes",
    "search",
    "sessions",
    "extensions",
    "telemetry",
    "config",
    "app",
    "cli",
  ],
  child_process: ["platform", "docker", "models", "extensions", "app", "cli"],
  net: ["docker"],
  http: ["models", "docker", "kubernetes", "search"],
  https: ["models", "docker", "kubernetes", "search"],
  tls: ["docker"],
  sqlite: ["platform", "sessions", "search"],
  module: ["docker", "search", "app", "cli"],
  worker_threads: ["search", "extensions"],
  cluster: [],
  console: [],
  process: [],
  tty: [],
  dgram: [],
  dns: [],
  http2: [],
  inspector: [],
  "inspector/promises": [],
  "dns/promises": ["docker"],
  repl: [],
  vm: ["app"],
  wasi: [],
};

/** Folders that reach files for others, and the only ones that may import them. */
const OWNERS = {
  platform: [
    "boxes",
    "docker",
    "kubernetes",
    "models",
    "search",
    "sessions",
    "extensions",
    "telemetry",
    "vet",
    "config",
    "app",
  ],
};

/**
 * Everybody may use the types of these folders; values may come only from the folders named here, so that whatever
 * reaches the engine, a model, a database or a policy is constructed in app and passed down.
 */
const VALUES = {
  cli: ["app", "render", "config", "core"],
  config: ["core", "platform", "policy"],
  agent: ["core", "policy", "tools", "models"],
};

/** Folders that import no built-in module at all. */
const PURE = new Set(["core", "policy", "tools", "agent"]);

/** Why `from` (a path inside src/ or sandbox/) may not import `source`, or undefined when it may. */
export function breach(from, source, isType = false) {
  const [top, folder] = from.split("/");
  if (source.startsWith("."))
    return localBreach(top, folder, path.posix.join(path.posix.dirname(from), source), isType);
  if (source.startsWith("node:")) return top === "src" ? builtinBreach(folder, source.slice(5)) : undefined;
  const name = source.split("/", source.startsWith("@") ? 2 : 1).join("/");
  if (top === "sandbox") return `sandbox/ imports no package, found ${name}`;
  const owners = PACKAGES[name];
  if (owners === undefined) return `${name} is not in the table of packages in test/house/house.js`;
  const inner = from.split("/").slice(1, 3).join("/");
  return owners.includes(folder) || owners.includes(inner)
    ? undefined
    : `${name} may be imported only by ${owners.join(", ")}`;
}

function localBreach(top, folder, target, isType) {
  const [targetTop, targetFolder] = target.split("/");
  if (top === "sandbox") return targetTop === "sandbox" ? undefined : "sandbox/ imports only from sandbox/";
  if (targetTop === "package.json") return undefined;
  if (targetTop !== "src") return `src/ imports only from src/, found ${target}`;
  if (targetFolder === folder) return undefined;
  const [own, other] = [LEVELS[folder], LEVELS[targetFolder]];
  if (own === undefined || other === undefined) return `no level for ${folder} or ${targetFolder}`;
  if (other >= own) return `${folder} (level ${own}) may not import ${targetFolder} (level ${other})`;
  const owners = OWNERS[targetFolder];
  if (owners !== undefined && !owners.includes(folder))
    return `src/${targetFolder} may be imported only by ${owners.join(", ")}`;
  const values = VALUES[folder];
  return isType || values === undefined || values.includes(targetFolder)
    ? undefined
    : `${folder} may import only types of ${targetFolder}; app constructs what it needs of it`;
}

function builtinBreach(folder, name) {
  if (PURE.has(folder)) return `${folder} is pure and imports no node: module`;
  const owners = BUILTINS[name];
  return owners === undefined || owners.includes(folder)
    ? undefined
    : `node:${name} may be imported only by ${owners.join(", ") || "no folder"}`;
}

/** The file's path from the folder that holds src/ or sandbox/, or undefined outside both. */
function inHouse(filename) {
  const match = /(?:^|\/)((?:src|sandbox)\/[^/]+.*)$/.exec(filename.replaceAll("\\", "/"));
  return match?.[1];
}

/** The text of a literal, written with quotes or backticks. @returns {unknown} */
const textOf = (source) =>
  source?.type === "TemplateLiteral" && source.expressions.length === 0
    ? source.quasis[0].value.cooked
    : source?.value;

/** Whether nothing of the import remains at run time. */
const isTypeOnly = (node) =>
  node.type === "TSImportType" || Array.from(kindsIn(node)).every((kind) => kind === "type");

/** The kind of an import or export as a whole, or of each name in it; one without names is a value import. */
function* kindsIn({ importKind, exportKind, specifiers = [] }) {
  const whole = String(importKind ?? exportKind);
  if (whole === "type" || specifiers.length === 0) yield whole;
  else for (const each of specifiers) yield String(each.importKind ?? each.exportKind);
}

const layers = {
  create(context) {
    const from = inHouse(path.relative(context.cwd, context.filename));
    if (from === undefined) return {};
    const check = (node) => {
      const literal = textOf(node.source) ?? node.argument?.literal?.value;
      if (typeof literal !== "string") {
        if (node.type === "ImportExpression") return;
        if (node.source === null || node.source === undefined) return;
      }
      const why = breach(from, literal, isTypeOnly(node));
      if (why !== undefined) context.report({ node, message: why });
    };
    return {
      ImportDeclaration: check,
      ImportExpression: check,
      ExportNamedDeclaration: check,
      ExportAllDeclaration: check,
      TSImportType: check,
    };
  },
};

/** A shorter file that only one neighbour uses belongs into that neighbour. */
const FRAGMENT = 40;

/** Which files import each file of src, and how; read once per tree, from the source texts. */
function importersIn(cwd) {
  const importers = new Map();
  for (const name of fs.readdirSync(path.join(cwd, "src"), { recursive: true })) {
    if (!name.endsWith(".ts")) continue;
    const from = `src/${name.replaceAll("\\", "/")}`;
    const text = fs.readFileSync(path.join(cwd, from), "utf8");
    for (const [, how, target] of text.matchAll(/\b(from|import)[\s(]*["'](\.[^"']+)["']/g)) {
      const file = path.posix.join(path.posix.dirname(from), target);
      const known = importers.get(file) ?? new Map();
      importers.set(file, known.set(from, how === "import" || known.get(from) === true));
    }
  }
  return importers;
}

const trees = new Map();

/** The only file that imports this one, if it lies in the same folder and loads this file at once. */
function onlyNeighbour(cwd, file) {
  if (!trees.has(cwd)) trees.set(cwd, importersIn(cwd));
  const [only, ...others] = trees.get(cwd).get(file) ?? [];
  if (only === undefined || others.length > 0) return undefined;
  const [importer, loadsLater] = only;
  if (loadsLater === true) return undefined;
  return path.posix.dirname(importer) === path.posix.dirname(file) ? String(importer) : undefined;
}

/** Tables of data do not count as code. */
const isCode = (statement) => {
  const inner = statement.declaration ?? statement;
  if (inner.type === "VariableDeclaration")
    return Array.from(inner.declarations).some(({ init }) => /Function|Class/.test(init?.type ?? ""));
  return /^(?:Function|Class|TSInterface|TSTypeAlias)/.test(inner.type);
};

/** Files are subjects: none may be so short that it is only a part of its neighbour. */
const fragments = {
  create(context) {
    const from = inHouse(path.relative(context.cwd, context.filename));
    if (from?.startsWith("src/") !== true) return {};
    if (from.startsWith("src/cli/commands/") || from.endsWith("/index.ts")) return {};
    return {
      Program(node) {
        const lines = context.sourceCode.text.trimEnd().split("\n").length;
        if (lines >= FRAGMENT || !node.body.some(isCode)) return;
        const neighbour = onlyNeighbour(context.cwd, from);
        if (neighbour === undefined || neighbour.endsWith("/index.ts")) return;
        context.report({ node, message: `${lines} lines that only ${neighbour} uses belong into that file` });
      },
    };
  },
};

/** No mutable state at module level, no barrels, no folder or file called utils. */
const tidy = {
  create(context) {
    const from = inHouse(path.relative(context.cwd, context.filename));
    if (from === undefined) return {};
    return {
      Program(node) {
        if (/(^|\/)(utils?|helpers?|misc|common)(\/|\.)/.test(from))
          context.report({ node, message: "name the file for what it owns" });
        // The program of the command `harness index` must have that name.
        const named = ["src/tools/index.ts", "src/cli/commands/index/index.ts"];
        if (from.endsWith("/index.ts") && !named.includes(from))
          context.report({ node, message: "the only barrel is src/tools/index.ts" });
        for (const statement of node.body) {
          const inner = statement.type === "ExportNamedDeclaration" ? statement.declaration : statement;
          if (inner?.type === "VariableDeclaration" && inner.kind !== "const")
            context.report({ node: inner, message: "no mutable state at module level" });
        }
      },
    };
  },
};

/** The only file that may write to a terminal, or name a path to one. */
const WRITER = "src/render/tty/output.ts";
const WRITE = `only ${WRITER} writes to stdout, stderr or a terminal; use its stdout and stderr`;
const SCREENS =
  /^\/(?:dev\/(?:tty|pts|std(?:out|err)|console|fd\/[12]$)|proc\/(?:self|thread-self|\d+)\/fd\/[12]$)/;
const STREAMS = new Set(["stdout", "stderr", "_rawDebug"]);
/** Methods by which an oclif command prints. */
const OWN_WORDS = new Set(["log", "logToStderr", "logJson", "warn"]);
/** Forbidden imports: a second way to write, or colours that the writer would show as text. */
const IMPORTED = { "@oclif/core": ["ux"], "node:util": ["styleText"] };

/** @returns {unknown} */
const nameOf = (node) => (node?.type === "Identifier" ? node.name : textOf(node));
const isProcess = (node) =>
  (node?.type === "Identifier" && node.name === "process") ||
  (node?.type === "MemberExpression" && nameOf(node.property) === "process");
/** Whether a node is the descriptor 1 or 2. */
const isStandard = (node) => node?.type === "Literal" && (node.value === 1 || node.value === 2);

/** No text of others reaches a terminal except through the one writer. */
const screen = {
  create(context) {
    const from = inHouse(path.relative(context.cwd, context.filename));
    if (from === undefined || from === WRITER) return {};
    const red = (node) => void context.report({ node, message: WRITE });
    return {
      MemberExpression(node) {
        const name = node.computed ? textOf(node.property) : nameOf(node.property);
        if (isProcess(node.object) && STREAMS.has(name)) red(node);
        if (node.object.type === "ThisExpression" && OWN_WORDS.has(name)) red(node);
      },
      VariableDeclarator(node) {
        if (!isProcess(node.init) || node.id.type !== "ObjectPattern") return;
        for (const each of node.id.properties)
          if (each.type === "RestElement" || STREAMS.has(nameOf(each.key))) red(each);
      },
      Identifier(node) {
        if (node.name === "console") red(node);
      },
      ImportSpecifier(node) {
        if (IMPORTED[node.parent.source.value]?.includes(nameOf(node.imported)) === true) red(node);
      },
      CallExpression(node) {
        const callee = nameOf(node.callee.type === "MemberExpression" ? node.callee.property : node.callee);
        const [first] = node.arguments;
        if (SCREENS.test(String(textOf(first)))) red(node);
        if (/^(?:write|writev|writeFile)(?:Sync)?$/.test(String(callee)) && isStandard(first)) red(node);
      },
      Property(node) {
        const name = nameOf(node.key);
        if (name === "fd" && isStandard(node.value)) red(node);
        if (name === "stdio" && JSON.stringify(stdioOf(node.value)).includes('"inherit"')) red(node);
      },
    };
  },
};

/** The stdio setting, as far as it is literal. */
function stdioOf(node) {
  const list = node.type === "ArrayExpression" ? node.elements : [node];
  return Array.from(list, textOf);
}

/** The only file that may create a chain of folders. */
const FOLDERS = "src/platform/folders.ts";

/** Whether this is an object that sets `recursive`, or may set it. */
const mayRecurse = (node) =>
  node?.type === "ObjectExpression"
    ? Array.from(node.properties).some(
        ({ type, key, value }) =>
          type === "SpreadElement" || (nameOf(key) === "recursive" && value?.value !== false),
      )
    : node !== undefined && node.type !== "Literal";

/** Node's own way to create a chain of folders never ends below /proc. */
const folders = {
  create(context) {
    const from = inHouse(path.relative(context.cwd, context.filename));
    if (from === undefined || from === FOLDERS) return {};
    const message = `only ${FOLDERS} makes folders with those above them: mkdir with \`recursive\` may never end`;
    return {
      CallExpression(node) {
        const callee = nameOf(node.callee.type === "MemberExpression" ? node.callee.property : node.callee);
        if (/^mkdir(?:Sync)?$/.test(String(callee)) && mayRecurse(node.arguments[1]))
          context.report({ node, message });
      },
    };
  },
};

/** The bundle is written in ASCII, with escapes for the other letters: raw text would have the escapes instead. */
const raw = {
  create(context) {
    if (inHouse(path.relative(context.cwd, context.filename)) === undefined) return {};
    const message = "a raw template holds ASCII only: put other letters into it from a plain string";
    return {
      TaggedTemplateExpression(node) {
        if (nameOf(node.tag.property) !== "raw") return;
        for (const part of node.quasi.quasis)
          if (/[\u0080-\uFFFF]/.test(part.value.raw)) context.report({ node: part, message });
      },
    };
  },
};

export default { meta: { name: "house" }, rules: { folders, fragments, layers, raw, screen, tidy } };
