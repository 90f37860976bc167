import type { Arg, Found, Model, Use } from "../model.ts";
import { fixedEffect, roleEffects } from "../roles.ts";
import { always, named } from "./parts.ts";

const LIGHT = { forced: false, recursive: false };
/** Nothing is compiled: it tells of itself, or of files that it knows. */
const TELLS =
  /^(?:-v|-V|--version|-print-[\w-]+(?:=[\w.+-]*)?|--print-[\w-]+(?:=[\w.+-]*)?|-dump(?:version|machine|fullversion|specs)|--help(?:=[\w,^]+)?|--target-help|-Q|-###)$/;
/** What is known not to write, load or run anything. */
const HARMLESS =
  /^(?:-fsyntax-only|-c|-S|-E|-g[0-3]?|-ggdb[0-3]?|-O\w?|-w|-pedantic(?:-errors)?|-ansi|-pthread|-static|-shared|-pipe|-std=[\w+:]+|-W(?![lpa],)[\w+=-]*|-D\w+(?:=[\w.]*)?|-U\w+|-m(?:32|64|arch=[\w.-]+|tune=[\w.-]+)|-f(?:no-)?(?:PIC|pic|PIE|pie|exceptions|rtti|strict-aliasing|permissive|diagnostics-color(?:=\w+)?|color-diagnostics|openmp|stack-protector(?:-\w+)?|omit-frame-pointer|sanitize=[\w,]+|visibility=\w+|max-errors=\d+|concepts|coroutines|common|char8_t|unsigned-char|signed-char|short-enums|inline-functions|fast-math|analyzer|function-sections|data-sections)|-M{1,2}|-nostdlib|-nostdinc)$/;

/** A compiler of C and its kin. Its options are many, and some of them run or load programs: only a few are known. */
function compiles(use: Use): readonly Found[] {
  const { args, folder, program } = use;
  const all = (shape: RegExp): boolean =>
    args.every(({ kind, value }) => kind === "literal" && shape.test(value));
  if (args.length > 0 && all(TELLS)) return [];
  const checks = args.some(({ kind, value }) => kind === "literal" && value === "-fsyntax-only");
  const found: Found[] = checks
    ? [fixedEffect("check", folder, program)]
    : [{ kind: "write", path: folder }, fixedEffect("project", folder, program)];
  for (const [at, arg] of args.entries())
    found.push(...(args[at - 1]?.value === "-o" ? written(arg, use) : word(arg, use)));
  return found;
}

const written = (arg: Arg, use: Use): readonly Found[] => roleEffects("write", arg, use, LIGHT);

function word(arg: Arg, use: Use): readonly Found[] {
  const { kind, value } = arg;
  if (value === "-o" && kind === "literal") return [];
  if (value.startsWith("-o")) return written({ ...arg, value: value.slice(2) }, use);
  if (/^-[IL]./.test(value)) return roleEffects("check", { ...arg, value: value.slice(2) }, use, LIGHT);
  if (value.startsWith("-"))
    return kind === "literal" && HARMLESS.test(value) ? [] : [unknownOption(arg, use)];
  if (value.startsWith("@")) return [use.doubt("option.loads-code", arg)];
  return roleEffects("check", arg, use, LIGHT);
}

/** Which library, which language: that much is known of these. */
function unknownOption(arg: Arg, use: Use): Found {
  const doubt = use.doubt("option.unknown", arg);
  return doubt.kind === "unknown" &&
    arg.kind === "literal" &&
    /^-(?:l[\w.+-]+|x(?:c|c\+\+)?|M[MDP]{1,2}|rdynamic|s|ffreestanding|)$/.test(arg.value)
    ? { ...doubt, inside: true }
    : doubt;
}

const CC: Model = { reads: compiles, tells: "--version --help -v" };

/** Linkers, assemblers and compilers of which nothing but their versions is known to be harmless. */
const compiler = (tells: string): Model => ({ ...always("ask", "project"), tells });

const CLANG_FORMAT: Model = {
  options: `-i!write -n -style= -assume-filename= -lines= -offset= -length= -cursor= -sort-includes -verbose -Werror -Wno-error= -dry-run -output-replacements-xml
    -ferror-limit= -fallback-style= -dump-config -files=loads -fail-on-incomplete-format`,
  singleDash: true,
  operands: "read*",
  tells: "--version -version --help -help -h",
};

const lint = (options: string, more: Partial<Model> = {}): Model => ({
  options,
  operands: "check*",
  fixed: ["check"],
  tells: "--version -version --help -help -h",
  ...more,
});

export const COMPILERS: Readonly<Record<string, Model>> = {
  ...named(
    `gcc g++ cc c++ clang clang++ cpp gfortran gcc-11 gcc-12 gcc-13 gcc-14 g++-11 g++-12 g++-13 g++-14 clang-14 clang-15 clang-16
     clang-17 clang-18 clang-19 clang++-14 clang++-15 clang++-16 clang++-17 clang++-18 clang++-19`,
    CC,
  ),
  "clang-format": CLANG_FORMAT,
  "clang-tidy": lint(
    "-p=check -checks= -header-filter= -quiet -warnings-as-errors= -list-checks -explain-config -dump-config -fix!write -fix-errors!write -fix-notes!write -config=loads -config-file=loads -load=loads -extra-arg=loads -export-fixes=write -store-check-profile=write -vfsoverlay=loads",
    { singleDash: true },
  ),
  cppcheck: lint(
    `-q -v -j: -I:check -D: -U: -i: --enable= --disable= --inconclusive --quiet --verbose --error-exitcode= --std= --language= --suppress= --inline-suppr --force --template=
     --xml --xml-version= --platform= --max-configs= --check-level= --output-file=write --addon=loads --cppcheck-build-dir=write --project=check --library=loads
     --rule-file=loads --plist-output=write --dump!project --clang=?loads --includes-file=loads --suppressions-list=read --file-list=loads`,
  ),
  cpplint: lint(
    "--filter= --linelength= --recursive --quiet --counting= --extensions= --exclude= --verbose= --root=check --output= --config=loads",
  ),
  ...named("cmake-lint cmakelint", lint("--filter= --quiet --config=loads --spaces= --linelength= -c:loads")),
  ...named(
    "ld ld.lld lld gold ld.gold ld.bfd mold as nasm yasm ranlib windres emcc em++ icx nvcc tcc",
    compiler("--version -v -V --help -h"),
  ),
  ...named(
    "ghc ocaml ocamlc ocamlopt dune opam nim crystal v vlang odin gleam",
    compiler("--version -version -v -V --help -h"),
  ),
  "llvm-config": {
    options:
      "--version --cflags --cxxflags --ldflags --libs --libdir --includedir --bindir --prefix --components --targets-built --host-target --system-libs --build-mode",
    operands: "data*",
  },
  ...named("pkg-config pkgconf", {
    options: `--modversion --cflags --libs --libs-only-l --libs-only-L --libs-only-other --cflags-only-I --cflags-only-other --exists --list-all --list-package-names
      --variable= --print-variables --print-requires --print-requires-private --print-provides --print-errors --short-errors --silence-errors
      --static --shared --atleast-version= --exact-version= --max-version= --uninstalled --errors-to-stdout --path --validate --digraph
      --with-path=loads --define-variable=loads --log-file=write`,
    operands: "data*",
    fixed: ["settings"],
  }),
};
