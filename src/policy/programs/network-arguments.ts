import { hostsOf } from "./argument-roles.ts";
import type { Arg, Found, Model, Use } from "./program-model.ts";

/** Another text at the place of an argument: a part of it, or what it implies. */
export const part = (arg: Arg, value: string): Arg => ({ ...arg, value });

export const given = ({ options }: Use, ...names: readonly string[]): boolean =>
  options.some(({ name }) => names.includes(name));

export const valuesOf = ({ options }: Use, ...names: readonly string[]): readonly Arg[] =>
  options.flatMap(({ name, value }) => (value !== null && names.includes(name) ? [value] : []));

export const reading = (file: Arg, use: Use): Found => ({
  kind: "read",
  path: use.place(file),
  span: file.span,
});

export const writing = (file: Arg, use: Use): Found => ({
  kind: "write",
  path: use.place(file),
  span: file.span,
});

export const networkTo = (arg: Arg): Found => ({ kind: "network", hosts: hostsOf(arg), span: arg.span });

/** For clients whose operands are hosts: without one the host comes from a file or a default. */
export const reachesAnyway = (use: Use): readonly Found[] =>
  use.operands.length > 0 ? [] : [{ kind: "network", hosts: [] }];

/** First words with which such programs only print a text for the shell. */
const PRINTS = new Set(["completion", "completions", "docker-env", "podman-env"]);

/** The network, with the hosts of all addresses among the arguments. */
function talks({ args, program }: Use): readonly Found[] {
  const [first] = args;
  if (first?.kind === "literal" && PRINTS.has(first.value)) return [{ kind: "process", what: program }];
  const addresses = args.filter(({ value }) => value.includes("://"));
  return [{ kind: "network", hosts: [...new Set(addresses.flatMap(hostsOf))] }];
}

/** What comes in by stdin are commands, some of which run on this side. */
export const commandsFromStdin = ({ input }: Use): readonly Found[] =>
  input === "nothing" ? [] : [{ kind: "code", from: "input", path: null }];

/** It talks to another machine, whatever its words say. */
export const remote = (tells = "--version --help"): Model => ({ tells, reads: talks });

/** It starts, changes or shows machines, containers or services of this machine. */
export const manages = (tells = "--version --help"): Model => ({
  tells,
  reads: ({ program }) => [{ kind: "process", what: program }],
});

/** Both: what it starts comes from another machine, or talks to one. */
export const runsElsewhere = (tells = "--version --help"): Model => ({
  tells,
  reads: (use) => [{ kind: "process", what: use.program }, ...talks(use)],
});

/** A sub-command that only tells of its program, with the options that it may have. */
export const telling = (options = "--short --json -json --client"): Model => ({ options, operands: "" });

/** The same model under each of these names. */
export const named = (names: string, model: Model): Readonly<Record<string, Model>> =>
  Object.fromEntries(names.split(/\s+/).map((name) => [name, model]));
