import {
  type Finding,
  type VetComparison,
  verdictOf,
  type VetReport,
  type VetStep,
  VET_EXIT,
  type Weight,
} from "../core/behaviour.ts";
import { lastName } from "../core/text/file-paths.ts";
import { visibleLine } from "../core/text/visible.ts";

/**
 * What one version of a repository does that another did not. `more`: further findings that are known to be new. Pure.
 */
export function compareReports(
  before: VetReport,
  after: VetReport,
  more: readonly Finding[] = [],
): VetComparison {
  const [was, is] = [keysOf(before.findings), keysOf(after.findings)];
  const known = new Set(more.map(exactly));
  const fresh = [
    ...more,
    ...after.findings.filter((finding) => !was.has(keyOf(finding)) && !known.has(exactly(finding))),
  ]
    .map((finding) => withCommand(finding, after.steps))
    .toSorted((one, other) => WEIGHTS.indexOf(one.weight) - WEIGHTS.indexOf(other.weight));
  const verdict = verdictOf(fresh);
  return {
    verdict,
    exit_code: VET_EXIT[verdict],
    before: { verdict: before.verdict, repository: before.repository },
    after: { verdict: after.verdict, repository: after.repository },
    findings: fresh,
    gone: before.findings.filter((finding) => !is.has(keyOf(finding))),
    changes: changesIn(before, after),
    unseen: [...new Set([...before.unseen, ...after.unseen])],
  };
}

/** Ignores numbers: those of lines, processes, ports and versions change from one version to the next. */
const keyOf = ({ rule, path, text }: Finding): string => `${rule}\n${path ?? text.replaceAll(/\d+/g, "0")}`;

const exactly = ({ rule, path, text }: Finding): string => `${rule}\n${path ?? ""}\n${text}`;

const WEIGHTS: readonly Weight[] = ["hostile", "noisy", "note"];

/** A comparison has no steps, so the finding names the command of its step. */
function withCommand({ step, ...finding }: Finding, steps: readonly VetStep[]): Finding {
  const command = step === undefined ? undefined : steps[step]?.command;
  return command === undefined || (finding.by ?? []).length > 0 ? finding : { ...finding, by: [command] };
}

const keysOf = (findings: readonly Finding[]): ReadonlySet<string> => new Set(findings.map(keyOf));

const MAX_LINES = 20;

const commands = (report: VetReport): ReadonlySet<string> =>
  new Set(report.steps.map(({ what, command }) => `${what} command ${command}`));

function changesIn(before: VetReport, after: VetReport): readonly string[] {
  const kinds = KINDS_OF_DEEDS.map(([does, what]) => {
    const all = (report: VetReport): ReadonlySet<string> => new Set(report.steps.flatMap(what));
    return [does, all(before), all(after)] as const;
  });
  return [["has the", commands(before), commands(after)] as const, ...kinds].flatMap(([does, was, is]) => [
    ...changeLines(`now ${does}`, without(is, was)),
    ...changeLines(`no longer ${does}`, without(was, is)),
  ]);
}

const without = (all: ReadonlySet<string>, known: ReadonlySet<string>): ReadonlySet<string> =>
  new Set([...all].filter((each) => !known.has(each)));

function changeLines(does: string, what: ReadonlySet<string>): readonly string[] {
  const all = [...what].map((each) => `${does} ${visibleLine(each)}`);
  return all.length <= MAX_LINES
    ? all
    : [...all.slice(0, MAX_LINES), `${does} ${all.length - MAX_LINES} more`];
}

function contacted({ connections, observed }: VetStep): readonly string[] {
  const addresses = observed.acts.flatMap((act) =>
    (act.kind === "connect" || act.kind === "send") &&
    act.family === "ip" &&
    !/^(?:127\.|::1$)/.test(act.address)
      ? [act.port === null ? act.address : `${act.address}:${act.port}`]
      : [],
  );
  return [...connections.map(({ host, port }) => `${host}:${port}`), ...addresses];
}

const programs = ({ observed }: VetStep): readonly string[] =>
  observed.processes.flatMap(({ words: [program = ""] }) => {
    const name = lastName(program);
    return name === "" ? [] : [name];
  });

const TRANSIENT = /^\/(?:tmp|dev|proc|var\/tmp)\/|\/\.(?:cache|npm)\//;

/** Paths outside of the repository only: what a build makes in it differs in every version. */
function written({ observed }: VetStep): readonly string[] {
  return pathsOf(observed.acts, new Set(["write", "make", "remove", "mode"]));
}

function read({ observed }: VetStep): readonly string[] {
  return pathsOf(observed.acts, new Set(["read"]));
}

const pathsOf = (acts: VetStep["observed"]["acts"], kinds: ReadonlySet<string>): readonly string[] =>
  acts.flatMap((act) =>
    "path" in act && kinds.has(act.kind) && isPersonal(act.path) && !TRANSIENT.test(act.path)
      ? [act.path]
      : [],
  );

const isPersonal = (path: string): boolean => /^\/(?:home\/box|root|etc|opt|usr\/local|var|srv)\//.test(path);

const KINDS_OF_DEEDS: readonly (readonly [does: string, what: (step: VetStep) => readonly string[]])[] = [
  ["contacts", contacted],
  ["runs", programs],
  ["writes", written],
  ["changes", ({ changes }) => [...changes.modified, ...changes.deleted]],
  ["reads", read],
];
