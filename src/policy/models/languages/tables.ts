import type { Arg, Found, Model, Use } from "../model.ts";
import { roleEffects } from "../roles.ts";

/** Options of Miller before its first verb that only say how data look; whether with a value. */
const FLAGS =
  /^--(?:[ico]?(?:csv|tsv|json|jsonl|dkvp|nidx|xtab|pprint|usv|asv|markdown|md|csvlite|tsvlite|jsonvstack)|c2[tjdnxpbml]|t2[cjdnxpbml]|j2[ctdnxpbml]|l2[ctdnxpbj]|[ckmnst]2p|barred|right|no-color|no-auto-flatten|no-auto-unflatten|implicit-csv-header|headerless-csv-output|headerless-csv-input|hi|ho|allow-ragged-csv-input|records-per-batch|nr-progress-mod|ofmt)$|^-[nIC]$/;
const VALUED = /^--(?:[io]?[fpr]s|fflatsep|ofmt|records-per-batch|nr-progress-mod)$/;
/** Verbs whose words are names of fields, numbers and the like. `tee`, `split`, `put`, `join` and others reach further. */
const VERBS =
  /^(?:cat|head|tail|tac|cut|sort|uniq|count|count-distinct|count-similar|top|label|rename|reorder|regularize|unsparsify|nothing|stats1|stats2|step|merge-fields|nest|fill-down|fill-empty|sec2gmt|group-by|group-like|having-fields|histogram|json-parse|json-stringify|flatten|unflatten|altkv|bar|decimate|sparsify|summary|template|seqgen|grep)$/;

/** Verbs stand behind the options, joined by `then`; the words behind the last verb's own are files. */
function mlrEffects(use: Use): readonly Found[] {
  const { args } = use;
  let at = 0;
  for (; at < args.length && args[at]?.value.startsWith("-") === true; at += 1) {
    const { value } = args[at] as Arg;
    if (VALUED.test(value)) at += 1;
    else if (!FLAGS.test(value) || value === "-I") return [use.doubt("option.unknown", args[at] as Arg)];
  }
  const verbs = args.filter((_, index) => index === at || (index > at && args[index - 1]?.value === "then"));
  const doubts = verbs
    .filter(({ value, kind }) => kind !== "literal" || !VERBS.test(value))
    .map((verb) => use.doubt("operand.unknown", verb));
  const vague = args.filter(({ kind }) => kind === "dynamic").map((arg) => use.doubt("word.dynamic", arg));
  // Which words are files, and which belong to a verb, makes no difference for names of fields.
  const read = args
    .slice(at + 1)
    .flatMap((arg) => roleEffects("read", arg, use, { forced: false, recursive: false }));
  return [...doubts, ...vague, ...read];
}

/** Options that all programs of csvkit have. */
const COMMON = `-d: -t -q: -u: -b -p: -z: -e: -L: -S -H -K: -v -l --delimiter= --tabs --quotechar= --quoting= --no-doublequote
  --escapechar= --maxfieldsize= --encoding= --locale= --skipinitialspace --no-header-row --skip-lines= --verbose
  --linenumbers --zero --blanks --null-value= --date-format= --datetime-format= --no-inference -I -y: --snifflimit=`;

const csv = (options: string): Model => ({
  options: `${COMMON} ${options}`,
  operands: "read*",
  tells: "--version --help -h -V",
});

export const TABLES: Readonly<Record<string, Model>> = {
  mlr: { reads: mlrEffects, tells: "--version --help version help" },
  csvcut: csv("-n -c: -C: -x --names --columns= --not-columns= --delete-empty-rows"),
  csvgrep: csv(
    "-n -c: -m: -r: -f:read -i -a --names --columns= --match= --regex= --file=read --invert-match --any-match",
  ),
  csvlook: csv("--max-rows= --max-columns= --max-column-width= --max-precision= --no-number-ellipsis"),
  csvstat:
    csv(`--csv --json -n -c: --names --columns= --type --nulls --unique --min --max --sum --mean --median --stdev --len
    --freq --freq-count= --count --decimal-format= --no-grouping-separator`),
  csvsort: csv("-n -c: -r -i --names --columns= --reverse --ignore-case"),
  csvjoin: csv("-c: --columns= --outer --left --right"),
  csvstack: csv("-g: -n: --groups= --group-name= --filenames"),
  csvformat: csv(
    "-D: -T -U: -Q: -P: -M: -E --out-delimiter= --out-tabs --out-quoting= --out-quotechar= --skip-header",
  ),
  csvjson: csv("-i: -k: --indent= --key= --lat= --lon= --stream"),
  in2csv: csv("-f: -s:read -k: -n --format= --schema=read --key= --names --sheet="),
  csvsql: { ...csv(""), fixed: ["ask"] },
  sql2csv: { ...csv(""), fixed: ["ask"] },
  csvpy: { ...csv(""), fixed: ["ask"] },
};
