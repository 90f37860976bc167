import type { Found, Model, Use } from "../model.ts";
import { fixedEffect, roleEffects } from "../roles.ts";
import { always, named } from "./parts.ts";

const LIGHT = { forced: false, recursive: false };
/** Nothing is compiled: it tells of itself, or of files that it knows. */
const TELLS =
  /^(?:-v|-V|--version|-print-[\w-]+(?:=[\w.+-]*)?|--print-[\w-]+(?:=[\w.+-]*)?|-dump(?:version|machine|fullversion|specs)|--help(?:=[\w,^]+)?|--target-help|-Q|-###)$/;
/** What is known not to write, load or run anything. */
const HARMLESS =
  /^(?:-fsyntax-only|-c|-S|-E|-g\w*|-O\w?|-w|-pedantic(?:-errors)?|-ansi|-pthread|-static|-shared|-pipe|-std=[\w+:]+|-W(?![lpa],)[\w+=-]*|-D\w+(?:=[\w."\\]*)?|-U\w+|-m[\w=.-]+|-f(?!plugin|profile|dump|auto-profile|compare-debug|callgraph|stack-usage|save|pass-plugin|use-ld|lto-|modules|module|cs-profile|debug-prefix|crash|bolt|sanitize-(?:ignore|black)list|xray|thinlto|embed)[\w=,-]+|-M{1,2}|-nostdlib|-nostdinc|-x(?:c|c\+\+|none)?)$/;

/** A compiler of C and its kin. Its options are many, and some of them run or load programs: only a few are known. */
function compiles(use: Use): readonly Found[] {
  const { args, folder, program } = use;
  if (args.every(({ kind, value }) => kind === "literal" && TELLS.test(value)) && args.length > 0) return [];
  const checks = args.some(({ kind, value }) => kind === "literal" && value === "-fsyntax-only");
  const found: Found[] = checks
    ? [fixedEffect("check", folder, program)]
    : [{ kind: "write", path: folder }, fixedEffect("project", folder, program)];
  for (let at = 0; at < args.length; at += 1) {
    const arg = args[at];
    if (arg === undefined) continue;
    const { kind, value } = arg;
    if (value.startsWith("-o") && kind === "literal") {
      const target = value === "-o" ? args[(at += 1)] : { ...arg, value: value.slice(2) };
      if (target !== undefined) found.push(...roleEffects("write", target, use, LIGHT));
    } else if (/^-[IL]./.test(value))
      found.push(...roleEffects("check", { ...arg, value: value.slice(2) }, use, LIGHT));
    else if (value.startsWith("-")) {
      if (kind !== "literal" || !HARMLESS.test(value)) found.push(use.doubt("option.unknown", arg));
    } else if (value.startsWith("@")) found.push(use.doubt("option.loads-code", arg));
    else found.push(...roleEffects("check", arg, use, LIGHT));
  }
  return found;
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
