import { type Sign, Signs } from "./danger-signs.ts";
import { lineAt } from "./looked-at-file.ts";
import type { LookRule } from "./rules.ts";

/** Weighs the signs in the text of a script, by when the script runs and which other signs it has. */

export interface Danger {
  readonly rule: LookRule;
  readonly text: string;
  readonly line: number;
}

/** Most characters of one script that are looked at. */
const MAX_TEXT = 2 ** 18;

/**
 * When a script runs. `itself`: when somebody installs, opens or enters; `asked`: when somebody builds or tests, where
 * fetching a tool is usual; `apart`: on build machines, or when somebody deploys, releases, or asks for a container, a
 * service or a hook by that name, where keys and engines are usual; `cells`: code of a notebook; `tried`: files that a
 * command for tests leads to, which is run and observed; `tested`: the code of tests; `shell`: a script that somebody
 * starts by its name; `loaded`: a program's own code, where much is usual.
 */
export type Runs = "itself" | "asked" | "apart" | "cells" | "tried" | "tested" | "shell" | "loaded";

/** Whether nobody needs this command or target to install, build or test. */
export const isApart = (name: string): boolean =>
  /^(?:un)?(?:deploy\w*|releases?|publish\w*|upload|push|sync|rsync|ssh|shell|docker\w*|podman|compose|container|k8s|kube\w*|helm|terraform|ci|(?:git)?hooks?|services?|systemd|completions?|login|(?:install|setup|add|enable|start)[-_](?:\w+[-_])?(?:git|hooks?|services?|systemd|units?|user|completions?|launchd|cron))(?:$|[-_:.])/i.test(
    name,
  );

type Row = readonly [rule: LookRule, sign: Sign, words: string, holds?: (signs: Signs) => boolean];

const sends = (signs: Signs): boolean => signs.has("NETWORK", "EXFIL_HOST", "RAW_ADDRESS");

const ALWAYS: readonly Row[] = [
  ["script.decoded", "DECODED", "hidden code is decoded and run"],
  ["script.reverse-shell", "REVERSE_SHELL", "a shell is opened for another machine"],
  ["script.aside", "ASIDE", "code is pushed far to the right, out of view"],
];

const collects = (signs: Signs): boolean => signs.names() && signs.has("EXFIL_HOST", "RAW_ADDRESS");

const LOADED: readonly Row[] = [
  ["code.decoded", "RUN_DECODED", "hidden code is decoded and run"],
  ["code.reverse-shell", "SHELL_AWAY", "a shell is opened for another machine"],
  ["script.aside", "ASIDE", "code is pushed far to the right, out of view"],
  ["code.steals", "PEOPLES", "keys are read and something is sent", collects],
  ["code.steals", "ENVIRONMENT", "the environment is read and sent", collects],
  ["code.steals", "TAKES", "keys or the environment are read and sent"],
];

const SHELL: readonly Row[] = [...LOADED, ["script.decoded", "DECODED", "hidden code is decoded and run"]];

const TESTED: readonly Row[] = [
  ...LOADED,
  ["code.steals", "PRIVATE_KEY", "a private key is read and something is sent", sends],
];

const NAMED_SIGNS: readonly (readonly [sign: Sign, words: string])[] = [
  ["SECRETS", "a place that holds keys is named"],
  ["METADATA", "the interface of a cloud or a container engine is named"],
  ["PERSISTS", "something that the machine starts later is written"],
  ["HOOKS", "git hooks or settings are written"],
  ["DESTROYS", "something that is not its own is destroyed"],
  ["PRIVILEGE", "more privileges are taken"],
];

const APART: readonly Row[] = [
  ...LOADED,
  ["script.steals", "TAKES", "keys or the environment are read and sent"],
  ["script.fetches-tool", "FETCH_AND_RUN", "a download is run"],
  ...NAMED_SIGNS.map(([sign, words]): Row => ["script.apart", sign, words]),
];

/** Cells of a notebook: people who open it run them one after the other. */
const CELLS: readonly Row[] = [
  ...APART,
  ["script.fetches-strange", "STRANGER", "a download from an unknown host is run"],
  ["code.steals", "PEOPLES", "keys are read and something is sent", sends],
];

const TRIED: readonly Row[] = [
  ...TESTED,
  ["script.steals", "TAKES", "keys or the environment are read and sent"],
  ["script.fetches-tool", "FETCH_AND_RUN", "a download is run"],
  ...NAMED_SIGNS.map(([sign, words]): Row => ["script.tried", sign, words]),
];

const ASKED: readonly Row[] = [
  ...ALWAYS,
  ["script.fetches-tool", "FETCH_AND_RUN", "a download is run"],
  ["script.fetches-strange", "STRANGER", "a download from an unknown host is run"],
  ["script.secrets", "SECRETS", "a place that holds keys is named"],
  ["script.steals", "ENVIRONMENT", "the environment is read and sent", sends],
  ["script.steals", "TAKES", "keys or the environment are read and sent"],
  ["script.metadata", "METADATA", "the interface of a cloud or a container engine is named"],
  ["script.persists", "PERSISTS", "something that the machine starts later is written"],
  ["script.hooks", "HOOKS", "git hooks or settings are written"],
  ["script.destroys", "DESTROYS", "something that is not its own is destroyed"],
  ["script.privilege", "PRIVILEGE", "more privileges are taken"],
  ["script.exfil-host", "EXFIL_HOST", "a host that only collects data is named"],
];

const ITSELF: readonly Row[] = [
  ...ASKED.filter(([rule]) => !rule.startsWith("script.fetches-")),
  ["script.fetch-and-run", "FETCH_AND_RUN", "a download is run"],
  ["script.runs-text", "RUNS_TEXT", "a text is run as code", sends],
  ["script.raw-address", "RAW_ADDRESS", "an IP address is contacted"],
  // Build scripts of Cargo read all variables for the chosen features.
  [
    "script.environment",
    "ENVIRONMENT",
    "the whole environment is read",
    (signs) => !sends(signs) && !signs.has("FEATURES"),
  ],
  ["script.tokens", "TOKEN_VARIABLE", "a token is read from the environment", sends],
  ["script.obfuscated", "OBFUSCATED", "its text is obfuscated", (signs) => signs.has("SINK")],
  ["script.obfuscated", "RENAMED", "its text is obfuscated"],
  ["script.obfuscated", "PIECES", "a name is put together from pieces"],
  ["script.detached", "DETACHED", "a process outlives it"],
  ["script.waits", "DATE", "it waits for a date", (signs) => signs.has("NETWORK", "RUNS", "WRITES")],
  [
    "script.waits",
    "CI",
    "it waits until it is on a build machine",
    (signs) => signs.has("NETWORK") && signs.has("RUNS", "WRITES", "PERSON"),
  ],
  ["script.waits", "SLEEPS", "it sleeps for a long time"],
  ["script.who", "PERSON", "it reads its user and machine, and sends something", sends],
  ["script.network", "NETWORK", "the network is reached"],
];

const ROWS: Readonly<Record<Runs, readonly Row[]>> = {
  itself: ITSELF,
  asked: ASKED,
  apart: APART,
  cells: CELLS,
  tried: TRIED,
  tested: TESTED,
  shell: SHELL,
  loaded: LOADED,
};

export function dangersIn(text: string, runs: Runs): readonly Danger[] {
  const searched = text.slice(0, MAX_TEXT);
  const signs = new Signs(searched);
  return ROWS[runs].flatMap(([rule, sign, words, holds]) => {
    if ((holds !== undefined && !holds(signs)) || !signs.has(sign)) return [];
    const at = signs.quoted(sign);
    return [{ rule, text: `${words}: ${at.words}`, line: lineAt(searched, at.index) }];
  });
}
