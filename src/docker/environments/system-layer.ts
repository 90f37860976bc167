import { randomBytes } from "node:crypto";
import type { Recipe } from "./recipe.ts";
import { constants } from "node:os";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import type { ExecRequest } from "../../core/ports.ts";
import { visible } from "../../core/visible.ts";
import { startCommand } from "../../boxes/box-command.ts";
import type { RunnerClient } from "../../boxes/runner-client.ts";
import { statIn, writeFileIn } from "../../boxes/runner-files.ts";
import { boxImage, RUNNER } from "../box-image.ts";
import { shortHash } from "../image-inputs.ts";
import { verifiedContainer } from "../box/container.ts";
import { folderForMounts } from "../box/account.ts";
import { boxLabels, thisProcess } from "../../boxes/box-record.ts";
import type { BoxPlan } from "../container-spec.ts";
import { type Engine, engineFailure, hostFacts, readSeccomp } from "../engine.ts";
import { type BoxNetwork, networkFolder, type NetworkRequest, openNetwork } from "../egress/box-network.ts";
import type { SystemStep } from "./system-steps.ts";
import { takePaths } from "./taken-paths.ts";

const AF_NETLINK = 16;
const NETLINK_AUDIT = 9;

export const ENVIRONMENT_REPOSITORY = "harness-env";
/** On images and volumes of environments. Not a box label: they outlive all boxes. */
export const ENVIRONMENT_LABEL = "dev.harness.environment";

export interface LayerRequest {
  readonly engine: Engine;
  /** The folder of the installed package. */
  readonly root: string;
  readonly uid: number;
  readonly stateDir: string;
  /** The recipe's own image; null for the sandbox image. */
  readonly image: string | null;
  readonly tag: string;
  readonly key: string;
  /** The ids of the images of its stages. */
  readonly stages: readonly string[];
  readonly steps: readonly SystemStep[];
  /** The bytes of a file that a step names. */
  readonly bytesOf: (file: StepFile) => Promise<Uint8Array>;
  readonly limits: BoxPlan["limits"];
  readonly network: NetworkRequest | undefined;
  /** A step that prints nothing for so long is ended. */
  readonly silentMs: number;
  readonly onStep: (title: string) => void;
  readonly onOutput: (bytes: Uint8Array) => void;
  readonly signal: AbortSignal;
}

type StepFile = NonNullable<SystemStep["files"]>[number];

export const systemTag = (key: string): string => `${ENVIRONMENT_REPOSITORY}:${key}-system`;
/** For the image of a stage, which exists only until the layer that takes files from it is complete. */
export const stageTag = (key: string): string => `${ENVIRONMENT_REPOSITORY}:${key}-stage`;
/** A build that was ended and never resumed leaves such an image: nothing but a build needs it. */
export const isStage = (tag: string): boolean => tag.endsWith("-stage");
/** On the image of a stage: the state folder whose build made it, and whose user may delete it. */
export const STAGE_LABEL = "dev.harness.stage_state";

/**
 * Makes the image of a system layer: as root, but without a workspace, with the few capabilities that packages need,
 * and with no network but the registries. The tag appears when everything has worked. The layer holds no byte of a
 * workspace except the files that its recipe names, and then its key is that workspace's own; so any workspace may use
 * every other layer.
 */
export async function makeSystemLayer(request: LayerRequest): Promise<void> {
  const { engine, signal, steps, onStep } = request;
  await using resources = new AsyncDisposableStack();
  const { plan, network } = await planLayer(request, resources);
  const container = await verifiedContainer(engine, plan);
  resources.defer(container.close);
  const stop = (): void => void container.close();
  signal.addEventListener("abort", stop, { once: true });
  resources.defer(() => signal.removeEventListener("abort", stop));
  for (const step of steps) {
    signal.throwIfAborted();
    onStep(step.title);
    const around = { network, request };
    const before = await bringFilesFor(container.client, step, { ...around, labels: plan.labels });
    await runStep(container.client, { ...step, script: `${before}${step.script}` }, around);
  }
  signal.throwIfAborted();
  onStep("keeping the system layer");
  await commit(request, container.id);
}

interface StepContext {
  readonly network: BoxNetwork | undefined;
  readonly request: LayerRequest;
}

/** Brings the files that the step's line expects; returns a script for the work that remains on them. */
async function bringFilesFor(
  client: RunnerClient,
  { title, files, from }: SystemStep,
  { labels, ...around }: StepContext & { readonly labels: BoxPlan["labels"] },
): Promise<string> {
  const { engine, stages, signal } = around.request;
  const image = from === undefined ? undefined : stages[from.stage];
  const run = (script: string, input?: AsyncIterable<Uint8Array>): Promise<void> =>
    runStep(client, { title, script, ...(input === undefined ? {} : { input }) }, around);
  const before = files === undefined ? "" : `${await putFiles(client, files, around)}\n`;
  if (from !== undefined && image !== undefined)
    await takePaths(from, { engine, image, labels, run, signal });
  return before;
}

async function planLayer(
  { engine, root, uid, stateDir, image, limits, network }: LayerRequest,
  resources: AsyncDisposableStack,
): Promise<{ readonly plan: BoxPlan; readonly network: BoxNetwork | undefined }> {
  const [{ id, volumes }, seccomp, owner, host, mounts] = await Promise.all([
    boxImage(engine, root, image),
    readSeccomp(root),
    thisProcess(),
    hostFacts(engine),
    folderForMounts(uid, stateDir),
  ]);
  const session = randomBytes(8).toString("hex");
  const folder = networkFolder(mounts, session);
  const opening = network === undefined ? undefined : await openNetwork(network, { folder, owner });
  const opened = await opening?.opened;
  if (opened !== undefined) resources.defer(opened.remove);
  const plan: BoxPlan = {
    image: id,
    argv: [RUNNER],
    mode: "workspace-write",
    user: { uid: 0, gid: 0 },
    readOnly: [],
    pinned: [],
    volumes,
    makesImage: true,
    ...(opened === undefined ? {} : { network: { folder } }),
    limits,
    host,
    seccomp: packagesSeccomp(seccomp),
    stdin: true,
    labels: boxLabels({
      workspace: "/",
      uid,
      owner,
      session,
      created: new Date().toISOString(),
      isolation: "none",
      mode: "workspace-write",
    }),
  };
  return { plan, network: opened };
}

/**
 * Allows set-id bits, because packages bring folders whose group is kept (2775), and programs that a box could not use
 * as they are meant: the bits of files are removed at the end of the step, and no box can set or use them.
 */
function packagesSeccomp(profile: string): string {
  const rules = JSON.parse(profile) as { readonly syscalls: readonly object[] };
  const names = ["chmod", "fchmod", "fchmodat", "fchmodat2", "mkdir", "mkdirat"];
  const allowed = { names, action: "SCMP_ACT_ALLOW" };
  // groupadd and useradd ask for the audit log, and continue without it only if there is none.
  const audit = {
    names: ["socket"],
    action: "SCMP_ACT_ERRNO",
    errnoRet: constants.errno.EAFNOSUPPORT,
    args: [
      { index: 0, value: AF_NETLINK, op: "SCMP_CMP_EQ" },
      { index: 2, value: NETLINK_AUDIT, op: "SCMP_CMP_EQ" },
    ],
  };
  return JSON.stringify({ ...rules, syscalls: [...rules.syscalls, allowed, audit] });
}

/** One file on each line: mode, owner or `-`, place. Names with line breaks were not taken. */
const FILE_LIST = "/run/harness-files";
const SET_MODES = `while IFS=' ' read -r mode owner file; do
  chmod "$mode" "$file"
  [ "$owner" = - ] || chown "$owner" "$file"
done <${FILE_LIST}
rm -f ${FILE_LIST}`;
/** Folders that are made on the way get the owner of the file. */
const MAKE_FOLDERS = `make() {
  if [ -d "$2" ]; then return 0; fi
  make "$1" "$(dirname "$2")"
  mkdir "$2"
  [ "$1" = - ] || chown "$1" "$2"
}
while IFS=' ' read -r mode owner file; do make "$owner" "$(dirname "$file")"; done <${FILE_LIST}`;

/** Puts the files in place; returns the script that sets their modes and owners. */
async function putFiles(
  client: RunnerClient,
  files: readonly StepFile[],
  around: StepContext,
): Promise<string> {
  const places = new Map<string, StepFile>();
  for (const file of files) places.set(await placeOf(client, file), file);
  const list = [...places].map(([to, { mode, owner = "-" }]) => `${mode} ${owner} ${to}\n`).join("");
  await writeFileIn(client, FILE_LIST, Buffer.from(list));
  await runStep(client, { title: "folders for files", script: MAKE_FOLDERS }, around);
  for (const [to, file] of places) await writeFileIn(client, to, await around.request.bytesOf(file));
  return SET_MODES;
}

async function placeOf(client: RunnerClient, file: StepFile): Promise<string> {
  if (file.within === undefined) return file.to;
  const there = await statIn(client, `${file.to}/.`).catch(() => undefined);
  return there?.kind === "folder" ? `${file.to}/${file.within}`.replace("//", "/") : file.to;
}

const STEP_MS = 3_600_000;
const KEEP = { head: 0, tail: 8 * 1024 };

async function runStep(
  client: RunnerClient,
  { title, script, env, folder = "/", input }: SystemStep & Pick<ExecRequest, "input">,
  { network, request }: StepContext,
): Promise<void> {
  const last: Buffer[] = [];
  const before = network?.connections().length ?? 0;
  using silence = new Silence(request.silentMs);
  const onOutput = (_: string, bytes: Uint8Array): void => {
    silence.broken();
    last.push(Buffer.from(bytes));
    if (last.length > 40) last.shift();
    request.onOutput(bytes);
  };
  const { ended, end } = startCommand(
    client,
    {
      words: ["sh", "-euc", folder === "/" ? script : `mkdir -p "$0" && cd "$0"\n${script}`, folder],
      folder: "/",
      env: { ...network?.env(), HOME: "/root", ...env },
      timeoutMs: STEP_MS,
      ...(input === undefined ? {} : { input }),
      keep: { ...KEEP, head: Number.MAX_SAFE_INTEGER },
      onOutput,
    },
    { workspace: "/" },
  );
  silence.signal.addEventListener("abort", () => end("cancelled"));
  const { exit_code, reason } = await ended;
  if (exit_code === 0) return;
  throw stepFailed({
    title,
    output: Buffer.concat(last).toString("utf8"),
    reason: silence.why ?? reason,
    refused: refusedLines(network, before),
  });
}

/** Connections that the proxy refused since then, each once. */
function refusedLines(network: BoxNetwork | undefined, since: number): string {
  const denied =
    network
      ?.connections()
      .slice(since)
      .filter(({ verdict }) => verdict === "denied") ?? [];
  return [...new Set(denied.map(({ host, reason }) => `refused: ${host}: ${reason}`))].join("\n");
}

/**
 * Ends a step that prints nothing for too long: a tool that keeps asking for something out of reach would use up its
 * whole hour.
 */
export class Silence implements Disposable {
  readonly #ending = new AbortController();
  readonly #timer: NodeJS.Timeout;
  readonly #ms: number;

  constructor(ms: number) {
    this.#ms = ms;
    this.#timer = setTimeout(() => this.#ending.abort(), ms);
  }

  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  /** Undefined unless the silence was too long. */
  get why(): string | undefined {
    if (!this.signal.aborted) return undefined;
    const minutes = this.#ms / 60_000;
    return `ended: it printed nothing for ${minutes >= 1 ? `${minutes} minutes` : `${this.#ms / 1000} s`}`;
  }

  broken(): void {
    this.#timer.refresh();
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }
}

/** A compiler prints nothing for minutes; a tool that waits for a registry without an answer never prints anything. */
export const SILENT_MS = 15 * 60_000;

const LAST_LINES = 10;
const MAX_GRANTS = 8;

export interface FailedStep {
  readonly title: string;
  /** What the step printed. */
  readonly output: string;
  readonly reason: string;
  /** What the proxy refused meanwhile, one line each. */
  readonly refused?: string;
  /** Hosts without a preset that the project's files name and nobody granted. */
  readonly named?: readonly string[];
  /** The next build continues at this step. */
  readonly continues?: boolean;
}

const MAX_TITLE = 160;

/** Detected commands may be long: their beginning is enough to recognise them. */
export function stepTitle({ run, folder }: Recipe["setup"][number]): string {
  const shown = run.length > MAX_TITLE ? `${run.slice(0, MAX_TITLE)}…` : run;
  return folder === "." ? shown : `${shown} (in ${folder})`;
}

/** Lines without a word of their own, and where npm keeps its log inside the box. */
const EMPTY = /^\s*(?:npm (?:error|ERR!)\s*(?:\d{3}\s*|A complete log of this run .*)?)?$/;

/** An error with the lines that say what went wrong: the first of them, and the last ones printed. */
export function stepFailed({
  title,
  output,
  reason,
  refused = "",
  named = [],
  continues = true,
}: FailedStep): HarnessError {
  const all = `${output}\n${refused}`.split("\n").filter((line) => !EMPTY.test(line));
  const [telling, last] = [
    all
      .slice(0, -LAST_LINES)
      .filter((line) => /\berr(?:or)?\b/i.test(line))
      .slice(0, 4),
    all.slice(-LAST_LINES),
  ];
  const lines = [...telling, ...last].map((line) => `\n    ${visible(line.slice(0, 300))}`);
  const grants = [...new Set([...named, ...refusedHosts(refused)])].slice(0, MAX_GRANTS);
  const what = refused === "" ? grants.join(", ") : "what was refused";
  const there = continues ? ", which continues there" : "";
  const next =
    /no space left|ENOSPC/i.test(output) || /\bdisk\b/.test(reason)
      ? `free some space (harness env rm; docker system df), then: harness env build${there}`
      : grants.length > 0
        ? `if it may reach ${what}: harness env build --allow-domain ${grants.join(",")}${there}; harness env show --log shows all of it`
        : `harness env show --log shows all of it; fix the recipe or the project, then: harness env build${there}`;
  return new HarnessError(EXIT.failed, `set-up failed: ${title} (${reason})${lines.join("")}`, next);
}

/**
 * Hosts that a person may consider: the code that asked for them may be hostile, so no address is proposed, such as
 * that of a cloud's metadata, and no other method than those that read.
 */
const refusedHosts = (refused: string): readonly string[] =>
  Array.from(refused.matchAll(/(?<=--allow-domain )\S+(?= would grant it)/g), ([host]) => host).filter(
    (host) => /^(?:[a-z0-9_-]+\.)*[a-z][a-z0-9-]*(?::\d+)?$/.test(host),
  );

/** Blank labels, so that things made from the image are not mistaken for the box that made the image. */
export const BLANK_LABELS: readonly string[] = [
  "box",
  "uid",
  "session",
  "workspace",
  "owner_pid",
  "owner_start",
  "boot_id",
  "created",
  "mode",
  "isolation",
].map((name) => `LABEL dev.harness.${name}=`);

async function commit({ engine, tag: name, key, stateDir }: LayerRequest, id: string): Promise<void> {
  const [repo, tag] = name.split(":");
  try {
    await engine.api.getContainer(id).commit({
      repo,
      tag,
      changes: [
        ...BLANK_LABELS,
        `LABEL ${ENVIRONMENT_LABEL}=${key}`,
        ...(isStage(name) ? [`LABEL ${STAGE_LABEL}=${shortHash(stateDir)}`] : []),
        "ENTRYPOINT []",
        'CMD ["sh"]',
      ],
    });
  } catch (thrown) {
    if (/no space left/i.test(reasonOf(thrown)))
      throw stepFailed({
        title: "keeping the system layer",
        output: reasonOf(thrown),
        reason: "the disk is full",
      });
    throw engineFailure("keeping the system layer", thrown);
  }
}
