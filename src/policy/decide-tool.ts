import {
  type Decision,
  type MatchedRule,
  type ProgramPlace,
  strictest,
  type Verdict,
} from "../core/decision.ts";
import { coversHost, coversPort, grantText, readGrant, USUAL_PORTS } from "../core/network.ts";
import { fitsWildcard } from "../core/wording.ts";
import { asksForCommand, asksForEffect, mayFitEffect } from "./apply-rules.ts";
import { areGranted } from "./containment.ts";
import type { CommandContext } from "./decide.ts";
import { hostGrants } from "./judge-effects.ts";
import type { UserRule } from "./rule.ts";

/** What a tool call does beside its commands and paths. */
interface ToolDeed {
  readonly tool: string;
  readonly program?: ProgramPlace;
  readonly hosts: readonly string[];
  /** Hosts that the settings name for this tool; naming them grants them. */
  readonly services?: readonly string[];
}

type ToolContext = Pick<CommandContext, "mode" | "rules" | "granted" | "denied">;

interface Finding {
  readonly id: string;
  readonly reason: string;
  readonly verdict: Verdict;
  readonly contained: boolean;
  /** Whether an allow rule for the tool may replace this finding in this mode. */
  readonly coverable: boolean;
}

export interface ToolDecision extends Decision {
  /** Grants that would contain the call, in the form of `allow_domains`; empty where none would. */
  readonly grants: readonly string[];
}

/**
 * The verdict on a tool by its name, on the added program that does its work, and on the hosts that the tool reaches
 * itself. Undefined where none of these says anything: then the call's commands and paths decide alone.
 */
export function decideTool(deed: ToolDeed, context: ToolContext): ToolDecision | undefined {
  const { mode, rules = [] } = context;
  const found = findingsOf(deed, context);
  const names = [...deed.hosts, ...(deed.services ?? [])].map((host) => placeOf(host).name);
  const matching = rules.filter(
    (rule) => rule.tool?.some((each) => fitsWildcard(each, deed.tool)) === true || tightensHosts(rule, names),
  );
  if (found.length === 0 && matching.every(({ decision }) => decision === "allow")) return undefined;
  const tightening = matching.filter(({ decision }) => decision !== "allow").map(findingOf);
  const allow = matching.find(({ decision }) => decision === "allow");
  const remaining =
    allow === undefined ? found : found.map((each) => (each.coverable ? coveredBy(allow, each) : each));
  const findings = [...tightening, ...remaining];
  const verdict = strictest(findings.map((each) => each.verdict));
  const span = [0, deed.tool.length] as const;
  return {
    decision: verdict === "ask" && mode === "danger-full-access" ? "allow" : verdict,
    contained: findings.every(({ contained }) => contained),
    rules: findings
      .toSorted((a, b) => Number(b.verdict === verdict) - Number(a.verdict === verdict))
      .map(({ id, reason }): MatchedRule => ({ id, reason, span })),
    grants: verdict === "ask" && deed.program === undefined ? grantsToAsk(deed.hosts, context) : [],
  };
}

/** Rules on hosts that name no command hold for whatever reaches the hosts. A request has no path. */
const tightensHosts = (rule: UserRule, hosts: readonly string[]): boolean =>
  hosts.length > 0 &&
  rule.decision !== "allow" &&
  !asksForCommand(rule) &&
  asksForEffect(rule) &&
  mayFitEffect(rule, { kind: "network", hosts, by: "", span: [0, 0], call: 0 }, NO_PATHS);
const NO_PATHS = { workspace: "/", home: "/" };

function findingsOf(
  { tool, program, hosts, services = [] }: ToolDeed,
  context: ToolContext,
): readonly Finding[] {
  const writes = context.mode !== "read-only";
  const findings: Finding[] = [];
  if (program === "box")
    findings.push({
      id: "tool.program",
      reason: `${tool} is an added program, and its effects are not known`,
      verdict: "ask",
      contained: (context.granted ?? []).length === 0,
      coverable: writes,
    });
  if (program === "host")
    findings.push({
      id: "tool.host",
      reason: `${tool} runs in a program outside the box`,
      verdict: "ask",
      contained: false,
      coverable: writes,
    });
  if (hosts.length > 0)
    findings.push({
      id: "tool.network",
      reason: `${tool} reaches ${hosts.join(", ")}`,
      verdict: "ask",
      contained: allGranted(hosts, context),
      coverable: true,
    });
  if (services.length > 0)
    findings.push({
      id: "tool.service",
      reason: `${tool} sends requests to ${services.join(", ")}, which your settings name for it`,
      verdict: "ask",
      contained: !services.some((service) => isDenied(service, context)),
      coverable: true,
    });
  return findings;
}

/** Whether each host is granted at its port. */
const allGranted = (hosts: readonly string[], { granted: names = [], denied = [] }: ToolContext): boolean =>
  hosts.every((host) => {
    const { name, port } = placeOf(host);
    return areGranted(
      [name],
      hostGrants(names).filter((grant) => coversPort(grant, port)),
      denied,
    );
  });

const isDenied = (host: string, { denied = [] }: ToolContext): boolean =>
  denied.some((pattern) => coversHost({ host: pattern }, placeOf(host).name));

const HTTPS = 443;

function placeOf(host: string): { readonly name: string; readonly port: number } {
  const [, name = host, port] = /^(\[[^\]]*\]|[^:]*):(\d+)$/.exec(host) ?? [];
  return {
    name: name.toLowerCase().replace(/^\[(.*)\]$/, "$1"),
    port: port === undefined ? HTTPS : Number(port),
  };
}

/** The grants to ask for. None for a denied host, or for a text that is no host: a grant would gain nothing. */
function grantsToAsk(hosts: readonly string[], context: ToolContext): readonly string[] {
  if (hosts.length === 0 || allGranted(hosts, context)) return [];
  const read = hosts.map((host) => grantOf(host));
  const texts = read.flatMap((each) => (each.kind === "grant" ? [grantText(each.grant)] : []));
  if (texts.length < hosts.length) return [];
  const more = [...new Set([...(context.granted ?? []), ...texts])];
  return allGranted(hosts, { ...context, granted: more }) ? texts : [];
}

/** By the name alone, where that covers the port. */
function grantOf(host: string): ReturnType<typeof readGrant> {
  const named = USUAL_PORTS.includes(placeOf(host).port) ? readGrant(host.replace(/:\d+$/, "")) : undefined;
  return named?.kind === "grant" ? named : readGrant(host);
}

const findingOf = ({ id, reason, decision }: UserRule): Finding => ({
  id,
  reason,
  verdict: decision,
  contained: true,
  coverable: false,
});

const coveredBy = ({ id, reason }: UserRule, { contained }: Finding): Finding => ({
  id,
  reason,
  verdict: "allow",
  contained,
  coverable: false,
});
