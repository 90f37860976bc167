import { lstatSync, readlinkSync, realpathSync } from "node:fs";
import path from "node:path";
import { rm } from "node:fs/promises";
import type { Judge } from "../../agent/action-judge.ts";
import type { Settings } from "../../config/settings-schema.ts";
import { errorCode, EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { isInside } from "../../core/file-names.ts";
import { readRegularHead, replaceFile } from "../../platform/safe-files.ts";
import type { CommandContext } from "../../policy/decide.ts";
import { type IgnoreRules, MAX_RULES_LENGTH, readIgnore } from "../../policy/paths/ignore-rules.ts";
import { patternText } from "../../policy/paths/path-pattern.ts";
import type { UserRule } from "../../policy/rule.ts";
import type { Host } from "../host.ts";
import { repositoryAround } from "./repository-around.ts";
import { projectText } from "./project-trust.ts";
import type { AgentEvent, Recorded } from "../../core/events.ts";
import type { Session } from "../../core/session.ts";
import type { Proposal } from "../../policy/propose-policy.ts";
import { makeFolder } from "../../platform/folders.ts";

/** What commands are judged by apart from the mode: the rules of the user, and the rules of the project that count. */
export async function userPolicy(
  host: Host,
  workspace: string,
): Promise<Omit<CommandContext, "mode"> & { readonly rules: NonNullable<CommandContext["rules"]> }> {
  const { loadRules } = await import("../../config/load-config.ts");
  const project = await projectText(host, workspace, "rules");
  const rules = await loadRules({ env: host.env, project });
  return { workspace: path.resolve(workspace), home: host.places.home, rules };
}

/** A short description of a rule. Its values are included unescaped, and may contain anything. */
export function wordsOfRule({ id, prefix, exact, arg, effect, path, host, tool }: UserRule): string {
  const all: readonly (readonly [string, readonly string[] | undefined])[] = [
    ["arg", arg?.map((each) => each.join("*"))],
    ["effect", effect ?? undefined],
    ["path", path?.map(patternText)],
    ["host", host?.map((each) => each.join("*"))],
    ["tool", tool?.map((each) => each.join("*"))],
  ];
  const words = prefix?.map((each) => [...each].join("|")).join(" ");
  const counts = [
    ...(words === undefined ? [] : [exact ? words : `${words} …`]),
    ...all.flatMap(([name, values]) => (values === undefined ? [] : `${name} ${values.join("|")}`)),
  ];
  return `${counts.join(", ")} (${id})`;
}

/** The user's policy, with the files that the workspace hides from the model, and the programs of its packages. */
export async function workspacePolicy(
  host: Host,
  workspace: string,
  env: Settings["env"] = null,
): ReturnType<typeof userPolicy> {
  const policy = await userPolicy(host, workspace);
  const ignore = await ignoreRulesOf(host, workspace);
  const installed = installedBelow(policy.workspace, await environmentPrograms(host, workspace, env));
  return { ...policy, installed, ...(ignore === undefined ? {} : { ignore }) };
}

/** The programs of packages, and the folders, that the environment has: its volumes hide the workspace's own folders. */
async function environmentPrograms(
  { places }: Host,
  workspace: string,
  env: Settings["env"],
): Promise<ReadonlySet<string>> {
  const { filesOf, readRecord } = await import("../../docker/environments/environment-record.ts");
  const record = await readRecord(filesOf(places.state, workspace, env ?? ""));
  const folders = record?.recipe.folders.map((folder) => path.join(workspace, folder));
  return new Set([...(record?.installed?.programs ?? []), ...(folders ?? [])]);
}

/** The settings that commands are judged by. */
export type Reach = Pick<Settings, "mode" | "allow_domains"> &
  Partial<Pick<Settings, "deny_domains" | "env">>;

/** The policy with its tables, loaded for the first call to judge. `granted` may grow. */
export function lazyJudge(
  host: Host,
  { mode, allow_domains, deny_domains: denied = [], env = null }: Reach,
  workspace: string,
  granted: () => readonly string[] = () => allow_domains,
): () => Promise<Judge> {
  const loaded: { parts?: ReturnType<typeof judgeParts>; judge?: Judge; by?: readonly string[] } = {};
  return async () => {
    const [{ judgeIn }, policy] = await (loaded.parts ??= judgeParts(host, workspace, env));
    const by = granted();
    if (loaded.judge === undefined || loaded.by !== by)
      loaded.judge = judgeIn({
        ...policy,
        mode,
        granted: by,
        denied,
        links: linkFacts,
      });
    loaded.by = by;
    return loaded.judge;
  };
}

const judgeParts = (host: Host, workspace: string, env: Settings["env"]) =>
  Promise.all([import("../../agent/action-judge.ts"), workspacePolicy(host, workspace, env)]);

/** Judges a path of the workspace as for the file tools. */
export async function judgedPath(
  host: Host,
  file: string,
  { op, ...context }: CommandContext & { readonly op: "read" | "write" },
) {
  const { decideToolPath } = await import("../../policy/paths/decide-path.ts");
  const ignore = await ignoreRulesOf(host, context.workspace);
  return decideToolPath(file, op, {
    ...context,
    links: linkFacts,
    ...(ignore === undefined ? {} : { ignore }),
  });
}

/**
 * What the model may not see, by the workspace's own list and the lists of the folders above it in its repository;
 * undefined if there are none. An unreadable list ends the run.
 */
export async function ignoreRulesOf(
  host: Pick<Host, "places">,
  workspace: string,
): Promise<IgnoreRules | undefined> {
  const around = await repositoryAround(host, workspace);
  const lists = (around?.folders ?? []).map(async (folder) => ({ folder, rules: await listIn(folder) }));
  const above = (await Promise.all(lists)).flatMap(({ folder, rules }) =>
    rules === undefined ? [] : [{ folder, rules }],
  );
  const own = await listIn(workspace);
  return above.length === 0 ? own : { ...(own ?? readIgnore("")), above };
}

async function listIn(folder: string): Promise<IgnoreRules | undefined> {
  const file = path.join(folder, ".harnessignore");
  try {
    // A character takes at most four bytes.
    const text = await readRegularHead(file, { links: "follow", max: 4 * MAX_RULES_LENGTH + 4 });
    return readIgnore(text.toString("utf8"));
  } catch (thrown) {
    const code = errorCode(thrown);
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw new HarnessError(
      EXIT.usage,
      `${file}: cannot be read: ${reasonOf(thrown)}`,
      "make it a text file that you may read, or remove it",
      thrown,
    );
  }
}

/** Looks only at packages within the workspace: what lies above it is not in the box. */
function installedBelow(
  workspace: string,
  programs: ReadonlySet<string>,
): NonNullable<CommandContext["installed"]> {
  return (name, folder) => {
    const [, venv, plain] = /^(\.venv\/bin\/)?([\w@][\w.-]*)$/.exec(name) ?? [];
    const isEnvs = name === ".tox" || name === ".nox";
    if (plain === undefined && !isEnvs) return false;
    for (let at = path.resolve(folder); isInside(workspace, at); at = path.dirname(at)) {
      const program = isEnvs ? path.join(at, name) : path.join(at, venv ?? "node_modules/.bin", plain ?? "");
      if (programs.has(program) || lstatSync(program, { throwIfNoEntry: false }) !== undefined) return true;
      if (at === path.dirname(at)) return false;
    }
    return false;
  };
}

/** The number of links that Linux follows in one path. */
const MAX_LINKS = 40;

/**
 * Where an absolute path really leads on this machine: links are followed as the kernel does, with `..` applied after
 * them. Parts that do not exist yet are appended as written, also behind a dangling link. Null if links form a circle.
 */
export function linkFacts(file: string): string | null {
  try {
    return realpathSync.native(file);
  } catch {
    return byName(file);
  }
}

function byName(file: string): string | null {
  let at = "/";
  let links = 0;
  const waiting = file.split("/").toReversed();
  while (waiting.length > 0) {
    const name = waiting.pop() ?? "";
    const next = path.posix.join(at, name);
    const target = name === "" || name === "." || name === ".." ? undefined : targetOf(next);
    if (target === undefined) at = next;
    else {
      links += 1;
      if (links > MAX_LINKS) return null;
      if (target.startsWith("/")) at = "/";
      waiting.push(...target.split("/").toReversed());
    }
  }
  return at;
}

function targetOf(file: string): string | undefined {
  try {
    return readlinkSync(file);
  } catch {
    return undefined;
  }
}

/** The policy and the grants that would have sufficed for sessions, derived from their records. */
export interface Proposed {
  readonly proposal: Proposal;
  /** A file of rules. */
  readonly text: string;
  /** Lines for `harness policy test`. */
  readonly examples: string;
}

/** All runs of all given sessions together, which must be of one workspace. */
export async function proposedFor(host: Host, sessions: readonly Session[]): Promise<Proposed> {
  const [{ recordingOf }, { proposePolicy, proposalText }] = await Promise.all([
    import("../../policy/propose-grants.ts"),
    import("../../policy/propose-policy.ts"),
  ]);
  const recording = recordingOf(eventsOf(sessions));
  const [workspace = "", ...others] = recording.workspaces;
  if (others.length > 0)
    throw new HarnessError(
      EXIT.usage,
      `these sessions belong to several folders: ${[workspace, ...others].join(", ")}`,
      "harness policy propose ID   (sessions of one folder at a time)",
    );
  const proposal = proposePolicy(recording, await workspacePolicy(host, workspace));
  const examples = proposal.examples.map((each) => `${JSON.stringify(each)}\n`).join("");
  const text = proposalText(
    proposal,
    sessions.map(({ id }) => id),
  );
  return { proposal, text, examples };
}

function* eventsOf(sessions: readonly Session[]): Generator<AgentEvent> {
  for (const session of sessions) yield* session.events();
}

/** Writes the proposal next to the sessions, never into a workspace. */
export async function writeProposal(host: Host, session: Session): Promise<Recorded> {
  const { proposal, text, examples } = await proposedFor(host, [session]);
  const files = filesOf(host, session.id);
  makeFolder(path.dirname(files.policy));
  await replaceFile(files.policy, text, { lasts: "content" });
  await replaceFile(files.examples, examples, { lasts: "content" });
  const { rules, allow_domains, left, refused } = proposal;
  return { ...files, rules: rules.length, allow_domains, left: left.length, refused: refused.length };
}

export async function removeProposal(host: Host, session: string): Promise<void> {
  for (const file of Object.values(filesOf(host, session))) await rm(file, { force: true });
}

const filesOf = ({ places }: Host, session: string): Pick<Recorded, "policy" | "examples"> => {
  const at = path.join(places.state, "proposals", session);
  return { policy: `${at}.toml`, examples: `${at}.jsonl` };
};
