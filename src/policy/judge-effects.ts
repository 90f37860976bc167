import { isInside } from "../core/file-names.ts";
import { type Grant, isPreset, readGrant } from "../core/network.ts";
import {
  areGranted,
  ASKED,
  codeObjection,
  CONTAINED,
  DENIED,
  HARMLESS,
  IN_WORKSPACE,
  isOwnHost,
  type Ruling,
  staysInside,
  UNKNOWN_DEED,
  type Worth,
} from "./containment.ts";
import type { Doubt, Effect, Place } from "./effects/effect.ts";
import { folderOfPattern, isBroad, SYSTEM_TOP } from "./paths/broad-places.ts";
import type { IgnoreRules } from "./paths/ignore-rules.ts";
import {
  isKept,
  type PathAccess,
  type PlaceKind,
  placeOfPattern,
  placeOfResolved,
} from "./paths/path-place.ts";

/** The ruling of one effect. */
export function rulingOf(effect: Effect, places: PolicyPlaces): Ruling {
  const { id, reason, worth } = kindRuling(effect, places);
  const { verdict, readOnly, contained } = worth;
  // All rulings have the same keys in the same order: they are read fast.
  return { span: effect.span, id, reason, verdict, readOnly, contained };
}

interface Rule extends Pick<Ruling, "id" | "reason"> {
  readonly worth: Worth;
}

function kindRuling(effect: Effect, places: PolicyPlaces): Rule {
  switch (effect.kind) {
    case "read":
    case "write":
    case "delete":
    case "permissions":
    case "device":
      return pathRuling(effect satisfies PathEffect, places);
    case "code":
      return codeRuling(effect satisfies CodeEffect, places);
    case "repository":
      return repositoryRuling(effect);
    case "unknown":
      return doubtRuling(effect);
    case "network":
      return networkRule(effect, places);
    case "install":
      if (effect.again === true)
        return rule(
          "install",
          `${effect.what} may install what the project has named since its installation, from granted hosts`,
          places.granted.length + places.presets.size === 0 ? HARMLESS : CONTAINED,
        );
      return rule(
        "install",
        `${effect.what} installs packages: it downloads them and may run their scripts`,
        effect.from !== undefined && places.presets.has(effect.from) ? CONTAINED : ASKED,
      );
    case "process":
      return rule(
        "process",
        `${effect.what} acts on other processes`,
        effect.inside === true ? CONTAINED : ASKED,
      );
    case "system":
      return rule(
        "system",
        `${effect.what} acts on the system as a whole: its disks, its power or its kernel`,
        DENIED,
      );
    case "privilege":
      return rule("privilege", `${effect.what} requests more privileges than the box gives`, DENIED);
    case "bomb":
      return rule("bomb", "it starts itself again and again", DENIED);
  }
}

const rule = (id: string, reason: string, worth: Worth): Rule => ({ id, reason, worth });

type NetworkEffect = Extract<Effect, { readonly kind: "network" }>;

function networkRule({ by, hosts, inside }: NetworkEffect, { granted, denied }: PolicyPlaces): Rule {
  if (inside === true)
    return rule(
      "network",
      `${by} listens for connections, or reports on its own machine's network`,
      CONTAINED,
    );
  const own = hosts.length > 0 && hosts.every(isOwnHost);
  return own
    ? rule("network.own", `${by} contacts a server on its own machine${toHosts(hosts)}`, CONTAINED)
    : rule(
        "network",
        `${by} reaches the network${toHosts(hosts)}`,
        areGranted(hosts, granted, denied) ? CONTAINED : ASKED,
      );
}

const toHosts = (hosts: readonly string[]): string => (hosts.length === 0 ? "" : `: ${hosts.join(", ")}`);

type PathEffect = Extract<Effect, { readonly kind: "read" | "write" | "delete" | "permissions" | "device" }>;

/** Facts about paths; all paths are absolute and normalised. */
export interface PolicyPlaces {
  readonly workspace: string;
  readonly home: string;
  /** Hosts that the box may reach. */
  readonly granted: readonly Grant[];
  /** Hosts that the box may not reach, whatever is granted. */
  readonly denied: readonly string[];
  /** Presets whose registries the box may reach. */
  readonly presets: ReadonlySet<string>;
  /** Whether code in this folder or file counts as the project's own. */
  isProject(path: Place): boolean;
  facts(path: string, op: "read" | "write"): PathFacts;
  /** Whether the path is a secret, is hidden, or (if it may be written) is something that the host obeys. */
  keeps(path: string, mayWrite: boolean): boolean;
}

export interface PathFacts {
  readonly kind: "workspace" | "temp" | "system" | "outside" | "sink" | "device";
  /** Why the file is likely to hold a secret. */
  readonly secret: string | null;
  /** What on the host obeys the file. */
  readonly trap: string | null;
  readonly ignored: boolean;
}

function pathRuling(effect: PathEffect, places: PolicyPlaces): Rule {
  const { path, by } = effect;
  if (effect.kind === "device") return { id: "device", reason: `${by} writes to a device`, worth: DENIED };
  if (path === null) return unknownPath(effect);
  if (effect.kind === "read") return readRuling(path, by, places);
  const broad =
    (effect.kind === "delete" || effect.kind === "permissions") &&
    (effect.recursive || namesAll(path, effect.kind, places)) &&
    isBroad(path, places);
  if (broad && effect.kind === "delete")
    return {
      id: "delete.broad",
      reason: `${by} deletes everything in ${displayPath(path, places)}`,
      worth: DENIED,
    };
  if (broad)
    return {
      id: "permissions.broad",
      reason: `${by} changes the permissions of everything in ${displayPath(path, places)}`,
      worth: DENIED,
    };
  return changeRuling(effect, path, places);
}

const unknownPath = ({ kind, by }: PathEffect): Rule =>
  kind === "read"
    ? { id: "read.unknown", reason: `what ${by} reads is known only at run time`, worth: CONTAINED }
    : { id: `${kind}.unknown`, reason: `what ${by} changes is known only at run time`, worth: UNKNOWN_DEED };

const OWN_ENVIRONMENT = "/proc/self/environ";

function readRuling(path: string, by: string, places: PolicyPlaces): Rule {
  const { kind, secret, ignored } = places.facts(path, "read");
  const what = displayPath(path, places);
  if (ignored)
    return { id: "read.ignored", reason: `.harnessignore keeps ${what} from being read`, worth: DENIED };
  if (secret !== null) {
    // A box gets nothing of the user's environment.
    const worth = path === OWN_ENVIRONMENT ? CONTAINED : ASKED;
    return { id: "read.secret", reason: `${what} is likely to hold a secret: ${secret}`, worth };
  }
  if (path === "/dev")
    return { id: "read.outside", reason: `${what} is outside the workspace`, worth: CONTAINED };
  if (kind === "device") return { id: "read.device", reason: `${what} is a device`, worth: ASKED };
  if (kind === "outside")
    return { id: "read.outside", reason: `${what} is outside the workspace`, worth: CONTAINED };
  return { id: `read.${kind}`, reason: `${by} reads ${what}`, worth: HARMLESS };
}

function changeRuling({ kind, by }: PathEffect, path: string, places: PolicyPlaces): Rule {
  const facts = places.facts(path, "write");
  const what = displayPath(path, places);
  if (facts.trap !== null)
    return { id: "write.trap", reason: `the host obeys ${what}: ${facts.trap}`, worth: DENIED };
  switch (facts.kind) {
    case "sink":
      return { id: "write.sink", reason: `${what} stores nothing`, worth: HARMLESS };
    case "device":
      return { id: "device", reason: `${what} is a device`, worth: DENIED };
    case "workspace":
    case "temp":
      return { id: `${kind}.${facts.kind}`, reason: `${by} ${VERBS[kind]} ${what}`, worth: CONTAINED };
    case "system":
    case "outside":
      return {
        id: `${kind}.outside`,
        reason: `${by} ${VERBS[kind]} ${what}, outside the workspace`,
        worth: ASKED,
      };
  }
}

const VERBS = {
  read: "reads",
  write: "writes",
  delete: "deletes",
  permissions: "changes the permissions of",
  device: "writes",
} as const;

/** The path as people write it, with `~`. */
function displayPath(path: string, { workspace, home }: PolicyPlaces): string {
  if (path === workspace) return "the workspace";
  if (path.startsWith(`${workspace}/`)) return path.slice(workspace.length + 1);
  if (path === home) return "the home folder";
  return path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : path;
}

type DoubtEffect = Extract<Effect, { readonly kind: "unknown" }>;

const REASONS: Readonly<Record<Doubt, (what: string, by: string) => string>> = {
  "word.dynamic": () => "the value of this word is known only at run time",
  "word.leading-glob": (what, by) =>
    `${what} may match a file whose name begins with -, which ${by} reads as an option`,
  "word.bare-glob": (what, by) =>
    `${what} matches every file, including one whose name ${by} reads as an option`,
  "command.unknown": (what) => `${what} is not a known program`,
  "command.elsewhere": (what) => `${what} is not the program of that name in the system folders`,
  "command.unfollowed": (what) => `what ${what} does cannot be determined`,
  "command.escapes": (what) => `${what} can itself run any command`,
  "option.unknown": (what, by) => `${what} is not an option of ${by} that is known to be harmless`,
  "operand.unknown": (what, by) => `${by} is not known to accept ${what}`,
  "option.loads-code": (what, by) => `${by} loads code, or settings that run code, from ${what}`,
  "language.unknown": (_, by) => `the program given to ${by} is not in a form known to be harmless`,
  "env.unknown": (what) => `${what} can change what programs do`,
  "env.own": (what) => `the effect of the variable ${what} is not known`,
  "shell.function": (what) => `${what} is redefined, so it is not the program of that name`,
  "shell.builtin": (what) => `${what} changes what the shell does afterwards`,
  "shell.expansion": () => "the shell evaluates an expression here, which can run commands",
  "shell.endless": () => "an endless loop starts processes and waits for none of them",
  "shell.coproc": () => "a coprocess runs in the background, and nothing waits for it to end",
  "shell.unreadable": (what) => `the text given to a shell is not understood: ${what}`,
  "shell.limit": (what) => `too complex to examine: ${what}`,
  "shell.unseen": (what) => `${what} is nested too deeply, or follows too many commands, to be examined`,
};

export const DOUBTS: readonly string[] = Object.keys(REASONS);

const doubtRuling = ({ doubt, what, by, inside }: DoubtEffect): Rule => ({
  id: doubt,
  reason: REASONS[doubt](what, by),
  worth: worthOf(doubt, inside === true),
});

function worthOf(doubt: Doubt, inside: boolean): Worth {
  if (doubt === "shell.unseen") return DENIED;
  return inside || doubt === "env.own" || doubt === "word.bare-glob" ? CONTAINED : UNKNOWN_DEED;
}

/**
 * Whether the path stands for a whole folder outside the workspace, by a pattern or by the folder's own name: `rm ~/*`,
 * `mv /etc x`, `chmod 777 /`. Such a command needs no recursive option. The permissions of a home folder alone are not
 * those of everything in it.
 */
function namesAll(path: string, change: "delete" | "permissions", places: PolicyPlaces): boolean {
  const { kind } = places.facts(path, "write");
  if (kind !== "outside" && kind !== "system") return false;
  if (folderOfPattern(path) !== path) return true;
  return path === "/" || SYSTEM_TOP.test(path) || (change === "delete" && path === places.home);
}

type CodeEffect = Extract<Effect, { readonly kind: "code" }>;

function codeRuling({ from, path, text, followed, by }: CodeEffect, places: PolicyPlaces): Rule {
  switch (from) {
    case "fetched":
      return { id: "code.fetched", reason: `${by} runs downloaded code`, worth: DENIED };
    case "input":
      return {
        id: "code.input",
        reason:
          text === undefined && followed !== true
            ? `${by} runs what it is given on stdin, which is not known`
            : `${by} runs what it is given on stdin`,
        worth: followed === true ? CONTAINED : textWorth(text, places),
      };
    case "inline":
      return inline(text ?? "", by, places);
    case "settings":
      return places.isProject(path)
        ? { id: "code.settings", reason: `${by} obeys the project's settings`, worth: HARMLESS }
        : outsideCodeRule(path, `${by} obeys settings from outside the workspace`, places);
    case "check":
      return places.isProject(path)
        ? { id: "code.check", reason: `${by} runs the project's own checks`, worth: IN_WORKSPACE }
        : outsideCodeRule(path, `${by} runs code from outside the workspace`, places);
    case "project":
      return places.isProject(path)
        ? { id: "code.project", reason: `${by} runs code of the project`, worth: CONTAINED }
        : outsideCodeRule(path, `${by} runs code from outside the workspace`, places);
  }
}

/** The box also contains third-party code that lies in the workspace or among temporary files. */
function outsideCodeRule(path: CodeEffect["path"], reason: string, places: PolicyPlaces): Rule {
  const kind = path === null ? "outside" : places.facts(path, "read").kind;
  const worth = kind === "workspace" || kind === "temp" ? CONTAINED : UNKNOWN_DEED;
  return { id: "code.elsewhere", reason, worth };
}

const inline = (text: string, by: string, places: PolicyPlaces): Rule => ({
  id: "code.inline",
  reason: staysInside(text, places)
    ? `${by} runs a small program given on the command line`
    : `${by} runs a program given on the command line`,
  worth: textWorth(text, places),
});

/** Ruling on a program given as text; undefined where the text is unknown. */
function textWorth(text: string | undefined, places: PolicyPlaces): Worth {
  if (text === undefined) return UNKNOWN_DEED;
  if (codeObjection(text, places)) return ASKED;
  return staysInside(text, places) ? CONTAINED : UNKNOWN_DEED;
}

type RepositoryEffect = Extract<Effect, { readonly kind: "repository" }>;

const CHANGES: Readonly<Record<RepositoryEffect["change"], readonly [reason: string, worth: Worth]>> = {
  record: ["records changes in the repository", CONTAINED],
  local: ["changes the repository", ASKED],
  lost: ["discards work or history of the repository", ASKED],
  rewritten: ["irrecoverably discards work or history", DENIED],
  remote: ["changes another repository", ASKED],
  forced: ["overwrites the history of another repository", DENIED],
};

function repositoryRuling({ change, what }: RepositoryEffect): Rule {
  const [says, worth] = CHANGES[change];
  return { id: `repository.${change}`, reason: `${what} ${says}`, worth };
}

interface Context {
  readonly workspace: string;
  readonly home: string;
  readonly ignore?: IgnoreRules;
  readonly granted?: readonly string[];
  readonly denied?: readonly string[];
}

const KINDS: Readonly<Record<PlaceKind, PathFacts["kind"]>> = {
  workspace: "workspace",
  temp: "temp",
  system: "system",
  home: "outside",
  outside: "outside",
  proc: "outside",
  unknown: "outside",
  "null-device": "sink",
  device: "device",
};

/** Folders with third-party code, and git's own data. */
const FOREIGN = /\/(?:node_modules|\.git|vendor|site-packages)(?:\/|$)/i;

export function placesFor(context: Context): PolicyPlaces {
  const { workspace, home, granted = [], denied = [] } = context;
  const isProject = (path: Place): boolean =>
    path !== null && isInside(workspace, path) && !FOREIGN.test(path.slice(workspace.length));
  return {
    workspace,
    home,
    granted: granted.length === 0 ? NO_GRANTS : hostGrants(granted),
    denied,
    presets: granted.length === 0 ? NONE : new Set(granted.map(presetIn).filter(isPreset)),
    isProject,
    facts: (path, op) => factsOf(path, op, context),
    keeps: (path, mayWrite) => keepsPath(path, mayWrite, context),
  };
}

const NONE: PolicyPlaces["presets"] = new Set();
const NO_GRANTS: PolicyPlaces["granted"] = [];

/** Name of the preset in `npm`, or in the form that also gives its registry: `npm=REGISTRY`. */
const presetIn = (text: string): string => text.split("=", 1)[0] ?? "";

/** The granted hosts. Presets are left out: they name none. */
export const hostGrants = (granted: readonly string[]): readonly Grant[] =>
  granted.flatMap((text) => {
    const read = readGrant(text);
    return read.kind === "grant" ? [read.grant] : [];
  });

const isPattern = (path: string): boolean => path.includes("*") || path.includes("?") || path.includes("[");

function keepsPath(path: string, mayWrite: boolean, context: Context): boolean {
  if (!isPattern(path)) return isKept(path, mayWrite, context);
  const { secret, ignored } = factsOf(path, "read", context);
  return secret !== null || ignored || (mayWrite && factsOf(path, "write", context).trap !== null);
}

function factsOf(path: string, op: PathAccess, context: Context): PathFacts {
  const place = isPattern(path) ? placeOfPattern(path, op, context) : placeOfResolved(path, op, context);
  return {
    kind: isPipe(path) ? "sink" : KINDS[place.kind],
    secret: place.secret,
    trap: place.protected ?? place.trap,
    ignored: place.ignored,
  };
}

/** Path of the pipe that `<( )` gives a program. */
const isPipe = (path: string): boolean => path === "/dev/fd/63";
