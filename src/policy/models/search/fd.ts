import type { Arg, Found, Model, Use } from "../model.ts";
import { optionTable } from "../options.ts";
import { type Manner, readArguments } from "../reading.ts";
import { roleEffects } from "../roles.ts";
import { filled, mostOf } from "./placeholder.ts";

const OPTIONS = optionTable({
  options: `-HIusigFalLp01qh -d: -E: -t: -e: -S: -o: -c: -j: -C:in --hidden --no-ignore --no-ignore-vcs --no-ignore-parent
  --no-global-ignore-file --no-require-git --unrestricted --case-sensitive --ignore-case --glob --regex --fixed-strings
  --and= --absolute-path --relative-path --list-details --follow --full-path --print0 --max-depth= --min-depth=
  --exact-depth= --exclude= --prune --type= --extension= --size= --changed-within= --changed-before= --newer= --older=
  --change-newer-than= --change-older-than= --owner= --format= --color= --hyperlink=? --threads= --max-results= --quiet
  --show-errors --base-directory=in --path-separator= --search-path=read --strip-cwd-prefix=? --one-file-system --mount
  --xdev --ignore-file=read --batch-size= --max-buffer-time= --ignore --ignore-vcs --no-hidden --no-follow`,
});
const MANNER: Manner = { strict: false, singleDash: false, abbreviates: false };
const LIGHT = { forced: false, recursive: false };
const RUNS: ReadonlySet<string> = new Set(["-x", "-X", "--exec", "--exec-batch"]);
const MARKS: readonly string[] = ["{}", "{/}", "{//}", "{.}", "{/.}"];

/** Options and operands, then perhaps `-x` with a command up to `;` or to the end. */
function fdEffects(use: Use): readonly Found[] {
  const at = use.args.findIndex(({ value, kind }) => kind === "literal" && RUNS.has(value));
  if (at === -1) return ownEffects(use.args, use).found;
  const rest = use.args.slice(at + 1);
  const end = rest.findIndex(({ value }) => value === ";");
  const command = end === -1 ? rest : rest.slice(0, end);
  const { found, starts, names } = ownEffects(
    [...use.args.slice(0, at), ...(end === -1 ? [] : rest.slice(end + 1))],
    use,
  );
  const finds = starts.flatMap((start) => names.map((name) => below(start, name)));
  const [most, doubts] = mostOf(finds, use);
  return [...found, ...doubts, ...commandEffects(command, most, use)];
}

interface Own {
  readonly found: readonly Found[];
  readonly starts: readonly Arg[];
  /** What its finds may be called, as patterns. */
  readonly names: readonly string[];
}

function ownEffects(args: readonly Arg[], use: Use): Own {
  const { options, operands, misread } = readArguments(args, OPTIONS, MANNER);
  const base = options.findLast(({ spec }) => spec.role === "in")?.value ?? null;
  const searched = options.flatMap(({ name, value }) =>
    name === "--search-path" && value !== null ? [value] : [],
  );
  const folders = searched.length > 0 ? operands : operands.slice(1);
  const here: Arg = { kind: "literal", value: ".", span: use.span };
  const relative = folders.length + searched.length > 0 ? [...folders, ...searched] : [here];
  const starts = base === null ? relative : relative.map((start) => inFolder(base, start));
  const extensions = options.flatMap(({ name, value }) =>
    EXTENSION.has(name) ? [`*/*.${value?.value ?? ""}`] : [],
  );
  return {
    starts,
    names: extensions.length > 0 ? extensions : [nameOf(searched.length > 0 ? undefined : operands[0])],
    found: [
      ...misread.map(({ doubt, arg, what }) => use.doubt(doubt, arg, what)),
      ...options.flatMap(({ spec: { role }, value }) =>
        value === null || role === "command" ? [] : roleEffects(role, value, use, LIGHT),
      ),
      ...starts.flatMap((start) => roleEffects("read", start, use, LIGHT)),
    ],
  };
}

const EXTENSION: ReadonlySet<string> = new Set(["-e", "--extension"]);

/** Everything, some of it, or what has one name. */
function nameOf(pattern: Arg | undefined): string {
  if (pattern === undefined || !/[A-Za-z0-9]/.test(pattern.value)) return "*";
  const name = pattern.value.replaceAll(/[\^$\\]/g, "").toLowerCase();
  return /^[\w.-]+$/.test(name) ? `*/${name}` : "*/*found*";
}

function inFolder(base: Arg, start: Arg): Arg {
  if (start.value.startsWith("/")) return start;
  const kind = start.kind === "literal" ? base.kind : start.kind;
  return { kind, value: `${base.value}/${start.value}`, span: start.span };
}

const below = ({ kind, value, span }: Arg, name: string): Arg => ({
  kind: kind === "dynamic" ? kind : "glob",
  value: `${value.replace(/\/+$/, "")}/${name}`,
  span,
});

/** What it finds stands in place of a mark, or at the end. */
function commandEffects(command: readonly Arg[], found: readonly Arg[], use: Use): readonly Found[] {
  const marked = command.some(({ value }) => MARKS.some((mark) => value.includes(mark)));
  const doubts = command
    .filter((word) => word.kind !== "literal")
    .map((word) => use.doubt(word.kind === "glob" ? "word.leading-glob" : "word.dynamic", word));
  if (command.length === 0) return [{ kind: "unknown", doubt: "operand.unknown", what: "no command" }];
  return [...doubts, ...use.command(filled(marked ? command : [...command, MARK], MARKS, found))];
}

const MARK: Arg = { kind: "literal", value: "{}", span: [0, 0] };

export const FD: Model = { reads: fdEffects, tells: "--version --help -V -h" };
