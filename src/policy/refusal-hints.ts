/** What would let a refused command run: a hint for each rule, and the grants of hosts and registries that it lacks. */
import { coversHost, type Grant, grantText, readGrant } from "../core/network.ts";
import { UNCARRIED } from "./carried-protocols.generated.ts";
import { areGranted, isOwnHost } from "./containment.ts";
import type { CommandContext, CommandDecision, CommandPolicy, Judgement } from "./decide.ts";
import type { Effect } from "./effects/effect.ts";
import { hostGrants } from "./judge-effects.ts";

/** How to get the network that a command lacks. */
export interface NetworkStep {
  readonly text: string;
  /** Rules whose own hint this text replaces. */
  readonly covers: readonly string[];
}

/**
 * The hint for a rule. `contained`: the command reaches nothing that is not granted. `network`: how to grant what the
 * command reaches, or why nothing can.
 */
export const hintFor = (rule: string, contained: boolean, network?: NetworkStep): string | undefined =>
  network?.covers.includes(rule) === true
    ? network.text
    : contained && (rule === "network" || rule === "install")
      ? GRANTED
      : HINTS.find(([id]) => rule === id || (id.endsWith(".") && rule.startsWith(id)))?.[1];

/** The hint where only one of several rules is shown. The network step follows if the hint does not include it. */
export const stepFor = (rule: string, contained: boolean, network?: NetworkStep): string | undefined => {
  const hint = hintFor(rule, contained, network);
  const rest = network === undefined || hint === network.text ? undefined : network.text;
  return hint === undefined || rest === undefined ? (hint ?? rest) : `${hint}; and ${rest}`;
};

/** What to do instead, by rule id; told to people and to a model that is refused. */
const HINTS: readonly (readonly [rule: string, hint: string])[] = [
  ["text.syntax", "write it in valid bash; put a long script into a file"],
  ["text.empty", "give a command"],
  ["text.", "write it with plain characters, and in shorter pieces"],
  ["word.dynamic", "write the value itself instead of the expansion"],
  ["word.leading-glob", "put -- before the pattern, or begin it with ./"],
  ["word.bare-glob", "write ./* instead"],
  ["command.unknown", "use a known program, or allow it by a rule of your own: harness policy allow"],
  ["command.elsewhere", "call the program by its plain name"],
  ["command.unfollowed", "if you know what it does, allow it by a rule of your own: harness policy allow"],
  [
    "command.escapes",
    "use a program that only reads, or allow it by a rule of your own: harness policy allow",
  ],
  ["option.loads-code", "leave the option out: the project's own configuration is used"],
  ["option.unknown", "leave the option out"],
  ["operand.unknown", "check which arguments the program accepts"],
  ["language.unknown", "use a simpler form, such as sed -n 1,20p or awk '{print $1}'"],
  ["env.", "leave the variable out"],
  ["shell.", "write the commands out, one after the other"],
  ["read.ignored", "remove it from .harnessignore yourself, if it may be read"],
  ["read.secret", "read an example file instead, such as .env.example"],
  ["read.outside", "read files in the workspace"],
  ["read.unknown", "name the file"],
  ["write.trap", "no rule can allow it: do it yourself, outside harness"],
  ["delete.broad", "name what to delete: rm -rf build"],
  ["permissions.broad", "name the files, without -R"],
  ["code.fetched", "download it, read it, then run the file"],
  ["code.input", "put the program into a file in the workspace and run that file"],
  ["code.inline", "put the program into a file in the workspace and run that file"],
  ["code.elsewhere", "run it from inside the workspace"],
  ["repository.rewritten", "no rule can allow it; git stash and git revert keep what was there"],
  ["repository.forced", "push without force, or do it yourself"],
  ["repository.", "if you know what it does, allow it by a rule of your own: harness policy allow"],
  ["network", "grant the host, --allow-domain HOST, or do it before or after the run"],
  [
    "install",
    "grant its registry by preset (--allow-domain npm, pip, cargo, go, maven or apt) or by host, or install it beforehand: harness env build",
  ],
  ["privilege", "leave sudo out: in the box it gains nothing"],
  ["system", "no rule can allow it"],
  ["device", "no rule can allow it"],
  ["bomb", "no rule can allow it"],
];

const GRANTED =
  "no change is needed: everything it reaches is granted, so it runs when nobody is there to ask";

type NetworkEffect = Extract<Effect, { readonly kind: "network" }>;

/**
 * Grants with which this command would be contained: hosts by name, installations by their preset. Empty if the command
 * is contained already, if no grant would do, or if nobody knows what the command reaches.
 */
export function wantedGrants(
  policy: CommandPolicy,
  { decision }: Pick<Judgement, "decision">,
  text: string,
  context: CommandContext,
): readonly string[] {
  if (decision.decision !== "ask" || decision.contained) return [];
  const grants = new Set<string>();
  for (const effect of decision.effects) {
    if (effect.kind === "install" && effect.again !== true && effect.from !== undefined)
      grants.add(effect.from);
    if (effect.kind !== "network" || effect.inside === true) continue;
    if (whyUncarried(effect, text) !== undefined) return [];
    const named = grantsFor(effect, text);
    if (named === undefined) return [];
    for (const each of named) grants.add(each);
  }
  if (grants.size === 0) return [];
  const granted = [...(context.granted ?? []), ...grants];
  return policy.decide(text, { ...context, granted }).contained ? [...grants] : [];
}

/** A file name that bash opens as a connection. */
const DEVICE = /\/dev\/(?:tcp|udp)\//;
/** Bounded in length, as it is tried at each position of a model's text. */
const SCHEME = /(?<![\w+.-])([a-z][a-z0-9+.-]{1,15}):\/\//gi;
const OF_THE_WEB: ReadonlySet<string> = new Set(["http", "https", "ws", "wss"]);

/**
 * Why no grant would give this program the network it asks for, and what would; undefined where a grant may. The way
 * out of a box carries HTTP, HTTPS and what a program tunnels through CONNECT by itself. `shown`: the words of the
 * command; for programs without a row, the addresses in them tell the protocol. git reads its addresses as https where
 * they are granted.
 */
export function uncarried(by: string, shown: string): string | undefined {
  const named = UNCARRIED.find(({ programs }) => programs.includes(by));
  if (named !== undefined) return named.says;
  if (DEVICE.test(shown)) return UNCARRIED.find(({ programs }) => programs.includes("nc"))?.says;
  if (by === "git") return undefined;
  const schemes = [...shown.matchAll(SCHEME)].map(([, scheme = ""]) => scheme.toLowerCase());
  if (schemes.length === 0 || schemes.some((scheme) => OF_THE_WEB.has(scheme))) return undefined;
  return UNCARRIED.find((kind) => schemes.some((scheme) => kind.schemes.includes(scheme)))?.says;
}

const whyUncarried = ({ by, span }: NetworkEffect, text: string): string | undefined =>
  uncarried(by, text.slice(...span));

/** The grants for the hosts that the effect names, or why no grant would do. */
export const grantsNaming = (effect: NetworkEffect, text: string): readonly string[] | string =>
  whyUncarried(effect, text) ?? grantsFor(effect, text) ?? "it names no host that could be granted";

/** Undefined if a host is not known or cannot be granted. */
function grantsFor({ hosts, span, by }: NetworkEffect, text: string): readonly string[] | undefined {
  const shown = text.slice(...span);
  const read = hosts
    .filter((host) => !isOwnHost(host))
    .flatMap((host) => portsOf(host, shown, by).map((port) => readGrant(`${host}${port}`)));
  if (hosts.length === 0 || read.some(({ kind }) => kind === "wrong")) return undefined;
  return read.flatMap((each) => (each.kind === "grant" ? [grantText(each.grant)] : []));
}

/** For these programs, `name:22` is the file 22 on a host, and no port. */
const COPIERS: ReadonlySet<string> = new Set(["git", "scp", "rsync"]);

/** The ports that the text gives for a host, such as `:8443`; an empty text stands for the ports of the web. */
function portsOf(host: string, shown: string, by: string): readonly string[] {
  const before = String.raw`(://(?:[^/\s@]*@)?${COPIERS.has(by) ? "" : String.raw`|(?<![\w.@/-])`})`;
  const found = shown.matchAll(
    new RegExp(
      String.raw`${before}${host.replaceAll(/[^\w-]/g, String.raw`\$&`)}\.?(?::(\d{1,5}))?(?![\w.:-])`,
      "gi",
    ),
  );
  const ports = [...found].map(([, , port]) =>
    port === undefined || port === "443" || port === "80" ? "" : `:${Number(port)}`,
  );
  return ports.length === 0 ? [""] : [...new Set(ports)];
}

/**
 * How to grant the network that a command needs, for the model and for people who read its refusal; undefined if the
 * command needs none, or if all of it is granted.
 */
export function networkStep(
  { effects }: Pick<CommandDecision, "effects">,
  text: string,
  { granted = [], denied = [] }: Pick<CommandContext, "granted" | "denied">,
): NetworkStep | undefined {
  const grants = hostGrants(granted);
  const closed = effects.filter(
    (effect): effect is NetworkEffect =>
      effect.kind === "network" &&
      effect.inside !== true &&
      !(isOpen(effect, grants, denied) && whyUncarried(effect, text) === undefined),
  );
  const [first] = closed;
  if (first === undefined) return undefined;
  const shut = denied.filter((host) =>
    closed.some(({ hosts }) => hosts.some((each) => coversHost({ host }, each))),
  );
  if (shut.length > 0)
    return {
      text: `the user's settings deny ${shut.join(", ")}, and no grant overrides that`,
      covers: ["network"],
    };
  const never = new Set(closed.flatMap((effect) => whyUncarried(effect, text) ?? []));
  const open = closed.filter((effect) => whyUncarried(effect, text) === undefined);
  const named = new Set(open.flatMap((effect) => grantsFor(effect, text) ?? []));
  const nameless = open.find((effect) => grantsFor(effect, text) === undefined);
  const isExpanded = nameless !== undefined && effects.some((effect) => isOpenWord(effect, nameless));
  const list = [...named].filter((each) => !granted.includes(each));
  const steps = [
    ...never,
    ...(list.length === 0
      ? []
      : [`grant the ${list.length === 1 ? "host" : "hosts"}, --allow-domain ${list.join(",")}`]),
    ...(open.some((effect) => isOtherProtocol(effect, text))
      ? ["use an https address: no grant carries git's other protocols"]
      : []),
    ...(nameless === undefined ? [] : [isExpanded ? WRITTEN_OUT : nameless.by === "git" ? A_REMOTE : A_HOST]),
  ];
  return { text: steps.join("; "), covers: isExpanded ? ["network", "word.dynamic"] : ["network"] };
}

const WRITTEN_OUT =
  "write the address out instead of an expansion: a host can only be granted by its name, --allow-domain HOST";
const A_REMOTE =
  "grant the remote's host, --allow-domain HOST, or all remotes for fetching, --allow-domain git; or do it before or after the run";
const A_HOST = "grant the host, --allow-domain HOST, or do it before or after the run";

const isOpen = ({ hosts }: NetworkEffect, granted: readonly Grant[], denied: readonly string[]): boolean =>
  (hosts.length > 0 && hosts.every(isOwnHost)) || areGranted(hosts, granted, denied);

/** Whether the same command has a word that only the shell will know. */
const isOpenWord = (effect: Effect, { call }: NetworkEffect): boolean =>
  effect.kind === "unknown" && effect.doubt === "word.dynamic" && effect.call === call;

const isOtherProtocol = ({ by, span }: NetworkEffect, text: string): boolean =>
  by === "git" && /(?:^|[\s'"=])(?:(?:ssh|git):\/\/|[\w.-]+@[\w.-]+:)/i.test(text.slice(...span));
