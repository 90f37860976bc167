import { isBroad } from "../judge/broad.ts";
import type { Model } from "../models/model.ts";
import { ESCAPING_PROGRAMS } from "../models/shell/escaping.ts";
import { INTERPRETERS } from "../models/shell/interpreters.ts";
import { SHELLS } from "../models/shell/shells.ts";
import { WRAPPERS } from "../models/shell/wrappers.ts";
import { PROGRAMS } from "../models/table.ts";
import { isNeverAllowed, PATH_EFFECTS } from "./effect-names.ts";
import { fixedPart, type PathPattern, takesAll } from "./path-pattern.ts";
import type { UserRule } from "./rule.ts";
import type { Wildcard } from "./wildcard.ts";

/** Why an allow rule cannot be meant as it stands, and the key to blame. */
export interface TooBroad {
  readonly key: string;
  readonly message: string;
}

export function whyTooBroad(rule: UserRule): TooBroad | undefined {
  if (rule.decision !== "allow") return undefined;
  return broadPrefix(rule) ?? broadEffect(rule) ?? broadPath(rule) ?? broadHost(rule);
}

const blame = (key: string, message: string): TooBroad => ({ key, message });

/** Programs that run others, or any code; the words of what they run are judged as a command of their own. */
const OTHERS = new Set(
  `node nodejs deno bun ts-node tsx python ipython pypy java awk gawk mawk nawk sed jq find fd xargs parallel make gmake just task
  npm npx pnpm pnpx yarn corepack bunx uv uvx pip pipx poetry conda gem bundle cargo go mvn gradle docker podman nerdctl
  kubectl helm ssh scp sftp rsync curl wget nc ncat socat telnet ftp git hg svn gh glab aws gcloud az terraform ansible
  crontab at batch systemctl rustup nvm volta asdf mise tar zip rg`.split(/\s+/),
);
const RUNNERS = new Set(
  `${Object.keys(WRAPPERS).join(" ")} command builtin exec eval source . trap xargs parallel busybox toybox`.split(
    " ",
  ),
);
const PROGRAM_TABLES = [SHELLS, INTERPRETERS, ESCAPING_PROGRAMS];

const runsOthers = (program: string): boolean => {
  const model: Model | undefined = PROGRAMS.get(program);
  return (
    OTHERS.has(program) ||
    model?.commands !== undefined ||
    PROGRAM_TABLES.some((table) => Object.hasOwn(table, program))
  );
};

/** Without folders and a version: `/usr/bin/python3.12` is python. */
const plainNames = (word: string): readonly string[] => {
  const name = word.slice(word.lastIndexOf("/") + 1);
  return [name, name.replace(/[-\d.]+$/, "") || name];
};

function broadPrefix({ prefix, exact, host, arg }: UserRule): TooBroad | undefined {
  if (prefix === null)
    return arg === null
      ? undefined
      : blame("arg", "an argument alone names no program: give the prefix that it belongs to");
  const [programs = new Set<string>(), second] = prefix;
  for (const word of exact ? [] : programs) {
    const names = plainNames(word);
    if (names.some((name) => RUNNERS.has(name)))
      return blame("prefix", `${word} runs another command: give the words of that command, without ${word}`);
    if (!names.some(runsOthers)) continue;
    if (second === undefined && host === null)
      return blame(
        "prefix",
        `${word} alone is too broad: it can run or fetch anything; give the next word too`,
      );
    const option = second === undefined ? undefined : [...second].find((each) => each.startsWith("-"));
    if (option !== undefined)
      return blame(
        "prefix",
        `${word} ${option} is too broad: an option says little; give all words, and exact = true`,
      );
  }
  return undefined;
}

function broadEffect({ effect, path, host, prefix }: UserRule): TooBroad | undefined {
  const never = effect?.find(isNeverAllowed);
  if (never !== undefined) return blame("effect", `no rule can allow ${never}`);
  if (prefix === null && path === null && host === null)
    return blame("effect", "an effect alone is too broad to be allowed: add a prefix, a path or a host");
  const [stranger] = effect?.filter((name) => !PATH_EFFECTS.has(name) && name !== "network") ?? [];
  if (prefix === null && stranger !== undefined)
    return blame(
      "effect",
      `${stranger} has no path and no host: add the prefix of the command that may do it`,
    );
  return undefined;
}

/** A place that no person's workspace is, so that what is judged is the pattern. */
const NOWHERE = { workspace: "/home/user/projects/this", home: "/home/user" } as const;

const takesInAll = (each: PathPattern): boolean =>
  (each.fixed < each.names.length && takesAll(each) && isBroad(fixedPart(each, NOWHERE), NOWHERE)) ||
  each.names.length === 0 ||
  fixedPart(each, NOWHERE) === "/";

function broadPath({ path, effect, prefix, exact }: UserRule): TooBroad | undefined {
  if (path === null || exact) return undefined;
  if (effect === null && prefix === null)
    return blame(
      "path",
      'a path alone is too broad to be allowed: say which effect, such as effect = "read"',
    );
  return path.some(takesInAll)
    ? blame("path", 'takes in nearly everything: name a folder below, such as "build/**"')
    : undefined;
}

/** Any star but one for the names below a domain. */
const takesMany = (each: Wildcard): boolean =>
  each.length > 1 && (each.length > 2 || each[0] !== "" || !/^\.[^.]+\.[^.]/.test(each[1] ?? ""));

function broadHost({ host }: UserRule): TooBroad | undefined {
  return host?.some(takesMany) === true
    ? blame("host", 'takes in too many hosts: a name, or "*.example.com"')
    : undefined;
}
