import { resolvePath } from "../paths/normal-path.ts";
import { isBoxed, isKept, isSystem } from "../paths/path-place.ts";
import { awkDeeds } from "../programs/awk-program.ts";
import type { Arg } from "../programs/program-model.ts";
import type { EffectKind, Place } from "./effect.ts";
import { LOCAL_TOOLS } from "./local-tools.generated.ts";

const LOCAL = new Set(LOCAL_TOOLS.local);
const ONLY_WITH = new Map(Object.entries(LOCAL_TOOLS.onlyWith));
const RUNNING = new Set(LOCAL_TOOLS.running);
const OPTIONS_WITH_VALUE = new Set(LOCAL_TOOLS.takesNext);
const REFUSED = new RegExp(LOCAL_TOOLS.refused);
const DEBUGGER_COMMANDS = new RegExp(`^(?:${LOCAL_TOOLS.told})$`);

interface At {
  readonly folder: Place;
  readonly workspace: string;
  readonly home: string;
}

/** Whether a program without a followed model works only on the project with these words. */
export function isLocalTool(program: string, args: readonly Arg[], at: At): boolean {
  if (args.some(({ kind }) => kind === "dynamic") || !args.every((arg) => leadsNear(arg, at))) return false;
  if (LOCAL.has(program)) return !args.some(({ value }) => INLINE.test(value));
  const known = ONLY_WITH.get(program);
  if (known !== undefined) return args.every(({ value }) => value.startsWith("-") || known.includes(value));
  return RUNNING.has(program) && runsProject(args);
}

function runsProject(args: readonly Arg[]): boolean {
  const words = args.map(({ value }) => value);
  for (let index = 0; index < words.length; index += 1) {
    const value = words[index] as string;
    if (!value.startsWith("-")) return value.includes("/");
    if (REFUSED.test(value)) return false;
    if (value === "-ex" && !DEBUGGER_COMMANDS.test(words[index + 1] ?? "")) return false;
    if (OPTIONS_WITH_VALUE.has(value)) index += 1;
  }
  return false;
}

const INLINE = new RegExp(LOCAL_TOOLS.inline);
const ADDRESS = /:\/\/|@\S+:|^@|[\\`$;|&]/;

/**
 * The word, read as a path or a list of paths, stays in the workspace, the temporary files and the system, and names
 * nothing secret or protected.
 */
function leadsNear({ value }: Arg, at: At): boolean {
  if (ADDRESS.test(value)) return false;
  return value
    .replace(/^-{1,2}[\w-]*[=:]?(?=[/~.])/, "")
    .split(/[:=,]/)
    .every((part) => isNear(part, at));
}

function isNear(path: string, { folder, workspace, home }: At): boolean {
  if (path.startsWith("~") || (folder === null && !path.startsWith("/"))) return false;
  const at = resolvePath(folder ?? "/", path);
  if (isSystem(at) || at === "/dev/null") return true;
  return isBoxed(at, workspace) && !isKept(at, true, { workspace, home });
}

const FILE =
  /^[\w+-][\w@.+-]*\/[\w@./+-]*$|^\.{1,2}\/[\w@./+-]+$|^\/[\w@./+-]+$|^[\w+-][\w.@+-]*\.(?:[cm]?[jt]s|json|toml|ini|cfg|ya?ml|rb|py|pl|pm|xml|conf)$/;
const FOLDERS_OF_CODE = new Set(LOCAL_TOOLS.foldersOfCode);
const ULIMIT = new RegExp(`^(?:${LOCAL_TOOLS.words.ulimit})$`);
const SHOPT = new RegExp(`^(?:${LOCAL_TOOLS.words.shopt})$`);
const IN_PLACE = new Set(LOCAL_TOOLS.inPlace);

/** `-i inplace 'program' files`: awk's output replaces plain files of the project. */
function changesInPlace(args: readonly Arg[], at: At): boolean {
  const [option, name, program, ...files] = args;
  if (option?.value !== "-i" || name?.value !== "inplace" || program?.kind !== "literal") return false;
  return (
    awkDeeds(program.value)?.length === 0 &&
    files.every(
      (file) =>
        /^[\w./*-]+$/.test(file.value) && !/^-|(?:^|\/)\.\w/.test(file.value) && isOfProject(file.value, at),
    )
  );
}

type DoubtFound = Extract<EffectKind, { readonly kind: "unknown" }>;

/** Whether the box settles this doubt about a use of a program. */
export function settles(program: string, args: readonly Arg[], { doubt, what }: DoubtFound, at: At): boolean {
  switch (doubt) {
    case "command.unknown":
    case "command.escapes":
    case "command.unfollowed":
      return isLocalTool(program, args, at);
    case "option.loads-code":
      if (IN_PLACE.has(program)) return what === "inplace" && changesInPlace(args, at);
      return (
        (FILE.test(what) || (FOLDERS_OF_CODE.has(program) && /^[\w./-]+$/.test(what))) &&
        isOfProject(what, at)
      );
    case "operand.unknown":
      return program === "ulimit" && ULIMIT.test(what);
    case "option.unknown":
      return program === "shopt" && args.every(({ kind, value }) => kind === "literal" && SHOPT.test(value));
    default:
      return false;
  }
}

const isOfProject = (path: string, { folder, workspace }: At): boolean =>
  (folder !== null || path.startsWith("/")) && isBoxed(resolvePath(folder ?? "/", path), workspace);
