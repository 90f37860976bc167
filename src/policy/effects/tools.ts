import type { Arg } from "../programs/program-model.ts";
import { awkDeeds } from "../programs/awk-program.ts";
import { isInside, resolvePath } from "../paths/normal-path.ts";
import { isSystem, isTemp } from "../paths/system-paths.ts";
import type { EffectKind, Place } from "./effect.ts";

/** Programs that work on the files they are given, as far as a box can tell: what they load or run is the project's. */
const LOCAL = new Set(
  `nm objdump readelf size ldd strip addr2line c++filt gprof gcov javac jar java javap javadoc kotlinc scalac dot neato plantuml convert
  identify magick mogrify montage pandoc sphinx-build sphinx-apidoc doxygen pdflatex xelatex lualatex latex latexmk bibtex tex
  ocamlc ocamlopt nasm yasm as ld ranlib tcc erlc elixirc ctags cloc tokei scc lcov genhtml gcovr
  flex bison yacc lex swig re2c m4 gperf antlr4 thrift flatc capnp cython cythonize pybind11-stubgen mdbook asciidoctor jekyll
  rst2html markdown cmark msgfmt xgettext pdftotext pdfinfo qpdf optipng pngcrush exiftool`.split(/\s+/),
);
/** Of these only what builds. */
const BUILDING: Readonly<Record<string, ReadonlySet<string>>> = {
  mkdocs: new Set(["build"]),
  hugo: new Set(["build"]),
};
/** They run the program that they are given, which must be one of the project. */
const RUNNING = new Set(["valgrind", "strace", "gdb"]);
const TAKES_NEXT = new Set(["-o", "-e", "-s", "-S", "-x", "-ex"]);
/** What a debugger may be told. */
const DEBUGS =
  /^(?:run|r|bt(?: full)?|where|quit|q|c|continue|n|s|next|step|finish|up|down|list|info [\w ]+|p [\w.>*()[\] -]+|print [\w.>*()[\] -]+|frame \d+|x\/\w+ [\w$]+|thread apply all bt|(?:break|b) [\w:./-]+|set pagination off|disassemble)$/;

interface At {
  readonly folder: Place;
  readonly workspace: string;
}

/** Whether a program that is not followed, or not known, works on nothing but the project with these words. */
export function isLocalTool(program: string, args: readonly Arg[], at: At): boolean {
  if (args.some(({ kind }) => kind === "dynamic") || !args.every((arg) => leadsNear(arg, at))) return false;
  if (LOCAL.has(program)) return !args.some(({ value }) => INLINE.test(value));
  const building = Object.hasOwn(BUILDING, program) ? BUILDING[program] : undefined;
  if (building !== undefined) return args.every(({ value }) => value.startsWith("-") || building.has(value));
  return RUNNING.has(program) && runsProject(args);
}

function runsProject(args: readonly Arg[]): boolean {
  const words = args.map(({ value }) => value);
  for (let index = 0; index < words.length; index += 1) {
    const value = words[index] as string;
    if (!value.startsWith("-")) return value.includes("/");
    if (/^-[px]$|^--(?:pid|attach|command|eval|init|trace-children-skip)/.test(value)) return false;
    if (value === "-ex" && !DEBUGS.test(words[index + 1] ?? "")) return false;
    if (TAKES_NEXT.has(value)) index += 1;
  }
  return false;
}

/** Code as an argument. */
const INLINE = /^-(?:[eE]|-?eval|-?exec|-?execute|-?shell-escape|-?enable-write18|-?lua-filter)\b/;
const ADDRESS = /:\/\/|@\S+:|^@|[\\`$;|&]/;

/** Nothing in the word, read as a path or as several, leads out of the workspace, the temporary files and the system. */
function leadsNear({ value }: Arg, { folder, workspace }: At): boolean {
  if (ADDRESS.test(value)) return false;
  return value
    .replace(/^-{1,2}[\w-]*[=:]?(?=[/~.])/, "")
    .split(/[:=,]/)
    .every((part) => isNear(part, folder, workspace));
}

function isNear(path: string, folder: Place, workspace: string): boolean {
  if (!/^[/~]|(?:^|\/)\.\.(?:\/|$)/.test(path)) return folder !== null && isBoxed(folder, workspace);
  if (path.startsWith("~") || (folder === null && !path.startsWith("/"))) return false;
  const at = resolvePath(folder ?? "/", path);
  return isBoxed(at, workspace) || isSystem(at) || at === "/dev/null";
}

/** In the workspace, or among the temporary files. */
export const isBoxed = (path: string, workspace: string): boolean =>
  isInside(workspace, path) || isTemp(path);

const FILE =
  /^[\w+-][\w@.+-]*\/[\w@./+-]*$|^\.{1,2}\/[\w@./+-]+$|^\/[\w@./+-]+$|^[\w+-][\w.@+-]*\.(?:[cm]?[jt]s|json|toml|ini|cfg|ya?ml|rb|py|pl|pm|xml|conf)$/;
const FOLDERS_OF_CODE = new Set(["ruby", "perl", "prove"]);
const SWITCHES =
  /^(?:-[su]|globstar|nullglob|dotglob|failglob|nocaseglob|nocasematch|checkwinsize|inherit_errexit)$/;

const AWKS = new Set(["awk", "gawk"]);

/** `-i inplace 'program' files`: what the program prints takes the place of plain files. */
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

/** Doubts about one use of a program that the box answers. */
export function settles(program: string, args: readonly Arg[], { doubt, what }: DoubtFound, at: At): boolean {
  switch (doubt) {
    case "command.unknown":
    case "command.escapes":
    case "command.unfollowed":
      return isLocalTool(program, args, at);
    case "option.loads-code":
      if (AWKS.has(program)) return what === "inplace" && changesInPlace(args, at);
      return (
        (FILE.test(what) || (FOLDERS_OF_CODE.has(program) && /^[\w./-]+$/.test(what))) &&
        isOfProject(what, at)
      );
    case "operand.unknown":
      return program === "ulimit" && /^(?:\d+|unlimited)$/.test(what);
    case "option.unknown":
      return (
        program === "shopt" && args.every(({ kind, value }) => kind === "literal" && SWITCHES.test(value))
      );
    default:
      return false;
  }
}

const isOfProject = (path: string, { folder, workspace }: At): boolean =>
  (folder !== null || path.startsWith("/")) && isBoxed(resolvePath(folder ?? "/", path), workspace);
