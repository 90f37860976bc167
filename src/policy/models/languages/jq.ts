import type { Arg, Found, Model, Role, Use } from "../model.ts";
import { isGuess, UNKNOWN } from "../model.ts";
import { roleEffects } from "../roles.ts";
import { filterNames } from "./filter-words.ts";

type ValueRole = Exclude<Role, "command">;

/** Options with values; of more than one value each has its role. */
const VALUES: Readonly<Record<string, readonly ValueRole[]>> = {
  "--arg": ["data", "data"],
  "--argjson": ["data", "data"],
  "--slurpfile": ["data", "read"],
  "--rawfile": ["data", "read"],
  "--indent": ["data"],
  "-L": ["loads"],
  "--library-path": ["loads"],
};

const FILTER_LETTER = /^-[a-zA-Z]*f[a-zA-Z]*$/;
const BUNDLE = /^-[crjasSCMneRhV]+$/;
const FLAGS: ReadonlySet<string> = new Set(
  `--compact-output --raw-output --raw-output0 --join-output --ascii-output --slurp --sort-keys --color-output
  --monochrome-output --null-input --exit-status --raw-input --tab --unbuffered --stream --stream-errors --seq --help
  --version --build-configuration`.split(/\s+/),
);
const FILTER_FILES: ReadonlySet<string> = new Set(["-f", "--from-file"]);

const ENVIRONMENT: ReadonlySet<string> = new Set(["env", "$ENV", "strenv", "envsubst"]);
const LOADING = /^(?:import|include|modulemeta|get_search_list|load\w*|strload|system|eval)$/;

/** What a filter reaches beyond its input. */
export function filterEffects(filter: Arg, use: Use): readonly Found[] {
  if (filter.kind === "dynamic") return [use.doubt("word.dynamic", filter)];
  const names = filter.kind === "literal" ? filterNames(filter.value) : null;
  if (names === null || names.some((name) => LOADING.test(name)))
    return [use.doubt("language.unknown", filter)];
  return names.some((name) => ENVIRONMENT.has(name))
    ? [{ kind: "read", path: "/proc/self/environ", span: filter.span }]
    : [];
}

function jqEffects(use: Use): readonly Found[] {
  return new JqReader(use).read();
}

class JqReader {
  private readonly found: Found[] = [];
  private readonly use: Use;
  private at = 0;
  private filterSeen = false;
  private filesFollow = true;
  private optionsEnded = false;

  constructor(use: Use) {
    this.use = use;
  }

  read(): readonly Found[] {
    const { args } = this.use;
    // Whichever word it is that names the file of the filter, all others are read as well.
    this.filterSeen = args.some(({ value }) => FILTER_FILES.has(value) || FILTER_LETTER.test(value));
    while (this.at < args.length) {
      const arg = args[this.at++] as Arg;
      if (arg.value === "--") this.optionsEnded = true;
      else if (!this.optionsEnded && arg.value.startsWith("-") && arg.value.length > 1) this.option(arg);
      else this.operand(arg);
    }
    return this.found;
  }

  private operand(arg: Arg): void {
    const open = arg.value.charAt(0);
    const isAny = arg.kind === "dynamic" && (open === UNKNOWN || isGuess(arg));
    if (arg.loose === true || isAny) this.found.push(this.use.doubt("word.dynamic", arg));
    else if (arg.kind === "glob" && (open === "*" || open === "?" || open === "["))
      this.found.push(this.use.doubt("word.leading-glob", arg));
    if (!this.filterSeen) {
      this.filterSeen = true;
      this.found.push(...filterEffects(arg, this.use));
    } else if (this.filesFollow) this.take("read", arg);
  }

  private take(role: ValueRole, arg: Arg): void {
    this.found.push(...roleEffects(role, arg, this.use, { forced: false, recursive: false }));
  }

  private option(arg: Arg): void {
    const { value, kind } = arg;
    const roles = VALUES[value];
    if (kind !== "literal") this.found.push(this.use.doubt("word.dynamic", arg));
    else if (roles !== undefined) this.valued(roles, arg);
    else if (value === "--args" || value === "--jsonargs") this.filesFollow = false;
    else if (FILTER_FILES.has(value) || FILTER_LETTER.test(value)) this.take("loads", arg);
    else if (value.startsWith("-L")) this.take("loads", arg);
    else if (!FLAGS.has(value) && !BUNDLE.test(value)) this.found.push(this.use.doubt("option.unknown", arg));
  }

  private valued(roles: readonly ValueRole[], option: Arg): void {
    for (const role of roles) {
      const value = this.use.args[this.at++];
      if (value === undefined)
        this.found.push(this.use.doubt("option.unknown", option, `${option.value} without its value`));
      // Without quotes, what is not known could be several words.
      else if (value.loose === true || value.kind === "glob")
        this.found.push(this.use.doubt("word.dynamic", value));
      if (value !== undefined) this.take(role, value);
    }
  }
}

/** jq and its like. Their options may stand anywhere. */
export const JQ: Model = { reads: jqEffects, tells: "--version --help -V -h --build-configuration" };
