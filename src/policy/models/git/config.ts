import type { Arg, Found, Model, Use } from "../model.ts";
import { isObeyed } from "./settings.ts";

/** Its first operand is an action since 2.46, and a key before that; both are understood. */
export const CONFIG: Model = {
  options: `-f: --file= --blob= -lz -e!ask --global --system --local --worktree --get --get-all --get-regexp --get-urlmatch
    --replace-all --add --unset --unset-all --rename-section --remove-section --list --fixed-value --edit!ask --get-color
    --get-colorbool -t: --type= --no-type --bool --int --bool-or-int --bool-or-str --path --expiry-date --null --name-only --includes!ask
    --no-includes --show-origin --no-show-origin --show-scope --no-show-scope --show-names --no-show-names --default= --all
    --regexp --value= --url= --append --comment=`,
  operands: "data*",
  also: configured,
};

const READS = new Set(
  "-l --list --get --get-all --get-regexp --get-urlmatch --get-color --get-colorbool".split(" "),
);
const WRITES = new Set(
  "--replace-all --add --unset --unset-all --rename-section --remove-section".split(" "),
);
const CHANGING = new Set(["set", "unset", "rename-section", "remove-section", "edit"]);
const SECRET = /pass(?:word|phrase)?$|token|secret|extraheader|cookie/i;

function configured(use: Use): readonly Found[] {
  const unclear = use.args
    .filter(({ kind }) => kind !== "literal")
    .map((arg) => use.doubt("word.dynamic", arg));
  return [...unclear, ...(isReading(use) ? shown(use) : written(use))];
}

/** Without an action a key alone is read, and a key with a value is set. */
function isReading({ options, operands: [first, second] }: Use): boolean {
  const has = (names: ReadonlySet<string>): boolean => options.some(({ name }) => names.has(name));
  if (has(WRITES)) return false;
  if (has(READS) || first?.value === "get" || first?.value === "list") return true;
  return second === undefined && !CHANGING.has(first?.value ?? "");
}

const fileGiven = ({ options }: Use): Arg | null =>
  options.findLast(({ name }) => name === "-f" || name === "--file")?.value ?? null;

function shown(use: Use): readonly Found[] {
  const file = fileGiven(use);
  const secrets = use.operands.filter(({ value }) => SECRET.test(value));
  return [
    ...(file === null ? [] : [{ kind: "read", path: use.place(file), span: file.span } as const]),
    ...secrets.map((arg) => use.doubt("operand.unknown", arg)),
  ];
}

function written(use: Use): readonly Found[] {
  const [first, second] = use.operands;
  const key = CHANGING.has(first?.value ?? "") ? second : first;
  const file = fileGiven(use);
  const span = key?.span ?? use.span;
  if (file !== null) return [{ kind: "write", path: use.place(file), span }];
  const what = `${use.program} ${key?.value ?? ""}`.trimEnd();
  return mayBeObeyed(key, use)
    ? [{ kind: "write", path: fileOf(use), span }]
    : [{ kind: "repository", change: "local", what, span }];
}

/** A section that is renamed may get any name; what is edited may be anything. */
const mayBeObeyed = (key: Arg | undefined, { args }: Use): boolean =>
  key?.kind !== "literal" || isObeyed(key.value) || args.some(({ value }) => WIDE.has(value));

const WIDE = new Set(["--rename-section", "rename-section", "--system"]);

/** The file that a setting goes to. */
function fileOf({ options, home, folder }: Use): string | null {
  const has = (wanted: string): boolean => options.some(({ name }) => name === wanted);
  if (has("--system")) return "/etc/gitconfig";
  if (has("--global")) return `${home}/.gitconfig`;
  return folder === null ? null : `${folder}/.git/config`;
}
