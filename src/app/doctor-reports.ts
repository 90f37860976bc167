import { existsSync } from "node:fs";
import { readFile, realpath, writeFile } from "node:fs/promises";
import { homedir, hostname, release, tmpdir, totalmem, userInfo } from "node:os";
import path from "node:path";
import type { Config } from "../config/load-config.ts";
import { formatSize } from "../core/wording.ts";
import { errorCode, EXIT, HarnessError, reasonOf } from "../core/errors.ts";
import { MIN_SECRET_LENGTH } from "../core/secrets.ts";
import {
  type BugReport,
  bugReportText,
  contentsOfReport,
  LEFT_OUT,
  type PrivateData,
  redactor,
} from "../telemetry/bug-report.ts";
import { keptLogs } from "../telemetry/diagnostics-log.ts";
import { checkUp } from "./checkup.ts";
import { diagnosticsFolder, settingsSet, versions } from "./diagnostics.ts";
import { type Host, packageRoot } from "./host.ts";
import { makeFolder } from "../platform/folders.ts";
import { ATTACKED_LIMITS, makeAttackTarget, runBattery } from "../docker/attack/battery.ts";
import { type AttackOutcome, type PromiseKept, promisesKept } from "../docker/attack/attack.ts";
import { startBox } from "../docker/box/start-box.ts";
import { requireEngine } from "./boxes/box-access.ts";

export interface Bundled {
  /** Path of the file. */
  readonly file: string;
  readonly bytes: number;
  readonly holds: readonly string[];
  readonly left_out: string;
}

interface Bundling {
  readonly host: Host;
  readonly workspace: string;
  readonly load: () => Promise<Config>;
  /** Left out: in our own state folder, never in a repository. */
  readonly file: string | undefined;
}

/** Writes one file for a bug report; an existing file is not overwritten. */
export async function writeBugReport({ host, workspace, load, file }: Bundling): Promise<Bundled> {
  const made = Date.now();
  const stamp = new Date(made).toISOString().replaceAll(/[-:]|\.\d+/g, "");
  const wanted = file ?? path.join(host.places.state, "bug-reports", `harness-${stamp}.txt`);
  const config = await load().catch(() => undefined);
  const report: BugReport = {
    made,
    versions: { ...versions(), release: release(), memory: formatSize(totalmem()) },
    checks: await checkUp(host, workspace, load),
    settings: config === undefined ? [] : settingsSet(config.settings, config.origins),
    variables: Object.keys(host.env)
      .filter((name) => REPORTED_VARIABLES.test(name))
      .toSorted(),
    logs: await keptLogs(diagnosticsFolder(host)),
  };
  const text = bugReportText(report, redactor(await privateOf(host, config)));
  await putNew(wanted, text, file === undefined);
  return {
    file: wanted,
    bytes: Buffer.byteLength(text),
    holds: contentsOfReport(report),
    left_out: LEFT_OUT,
  };
}

async function putNew(file: string, text: string, own: boolean): Promise<void> {
  try {
    if (own) makeFolder(path.dirname(file));
    await writeFile(file, text, { flag: "wx", mode: 0o600 });
  } catch (thrown) {
    const is = errorCode(thrown) === "EEXIST";
    const what = is ? `${file} already exists` : `${file} cannot be written: ${reasonOf(thrown)}`;
    throw new HarnessError(EXIT.usage, what, "harness doctor --bundle NEW-FILE.txt", thrown);
  }
}

/** Variables that change what harness does; of others not even the name is reported. */
const REPORTED_VARIABLES =
  /^(?:HARNESS_|OTEL_|DOCKER_|OLLAMA_|OPENAI_|ANTHROPIC_|QDRANT_|XDG_|NODE_|LC_|LANG$|TERM$|CI$|NO_COLOR$|FORCE_COLOR$|TMPDIR$|(?:HTTPS?|NO|ALL)_PROXY$)/i;
const SECRET_NAME = /key|token|secret|passw|pwd|credential|auth|cookie|session|headers|dsn|connection/i;

async function privateOf(host: Host, config: Config | undefined): Promise<PrivateData> {
  const { env, places } = host;
  const homes = [places.home, homedir(), env["HOME"] ?? ""].filter((home) => path.isAbsolute(home));
  const real = await Promise.all(homes.map((home) => realpath(home).catch(() => home)));
  const named = Object.keys(config?.settings.secrets ?? {});
  const fromEnv = Object.entries(env).flatMap(([name, value = ""]) =>
    named.includes(name) || (SECRET_NAME.test(name) && !isPlace(value)) ? [value, ...piecesOf(value)] : [],
  );
  const values = [...fromEnv, ...(await keysIn(host.keysFile))];
  return {
    homes: [...homes, ...real],
    users: [
      userName(),
      env["USER"] ?? "",
      env["LOGNAME"] ?? "",
      ...[...homes, ...real].map((home) => path.basename(home)),
    ],
    hosts: [hostname(), env["HOSTNAME"] ?? ""],
    values: [...new Set(values)].filter((value) => value.length >= MIN_SECRET_LENGTH),
  };
}

/** Whether the value is an existing path, such as PWD or the path of a file with a secret, and so no secret itself. */
const isPlace = (value: string): boolean => path.isAbsolute(value) && existsSync(value);

/** Every part of a value like `authorization=Bearer%20abc,x=y` that could itself be the secret. */
const piecesOf = (value: string): readonly string[] => {
  const parts = value.split(/[\s,;&=]+|%20/);
  return parts.filter((part) => part.length >= MIN_SECRET_LENGTH && !isPlace(part));
};

/** A user id may have no name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return "";
  }
}

const keysIn = async (file: string): Promise<readonly string[]> => {
  const text = await readFile(file, "utf8").catch(() => "");
  // Read as text, so that a file that is no JSON hides its keys too; as JSON has a text, and as it means it.
  return [...text.matchAll(/"((?:[^"\\]|\\.)*)"/g)].flatMap(([quoted, value = ""]) => [
    value,
    ...unquote(quoted),
  ]);
};

function unquote(quoted: string): readonly string[] {
  try {
    return [String(JSON.parse(quoted))];
  } catch {
    return [];
  }
}

export interface AttackRequest {
  readonly image: string | null;
  readonly runtime: string | null;
}

export interface AttackReport {
  readonly ok: boolean;
  readonly exit_code: number;
  readonly engine: string;
  readonly runtime: string;
  readonly took_ms: number;
  readonly promises: readonly PromiseKept[];
  readonly attacks: readonly AttackOutcome[];
}

/** The owner of the workspace if root runs the attacks: an ordinary user. */
const ORDINARY_USER_ID = 1000;

/** Reports what boxes of this machine and engine permit, in a workspace that is made for this and thrown away. */
export async function attackBoxes(
  host: Host,
  request: AttackRequest,
  signal: AbortSignal,
): Promise<AttackReport> {
  const begin = performance.now();
  const engine = await requireEngine(host, signal);
  const { home, state, cache } = host.places;
  const { uid } = host;
  const { image, runtime } = request;
  // Root's own folders are closed to others, and the attacker in the box is an ordinary user.
  await using target = await (uid === 0
    ? makeAttackTarget(tmpdir(), ORDINARY_USER_ID)
    : makeAttackTarget(path.join(cache, "attack"), null));
  const maker = { engine, root: packageRoot, uid, home, stateDir: state, onWarning: () => undefined };
  const shape = { mode: "workspace-write", image, limits: ATTACKED_LIMITS, runtime, keep: null } as const;
  const failed: { why?: unknown } = {};
  const attacks = await runBattery(
    {
      target,
      facts: { env: host.env },
      ownKernel: /^(?:runsc|gvisor)/.test(runtime ?? ""),
      open: (isolation, on) =>
        startBox(maker, { ...shape, workspace: target.workspace, isolation, watchChanges: false }, on).catch(
          (thrown: unknown) => {
            if (isolation === "bind") failed.why = thrown;
            throw thrown;
          },
        ),
    },
    signal,
  );
  if (failed.why instanceof HarnessError) throw failed.why;
  const ok = attacks.every(({ state: each }) => each === "held");
  return {
    ok,
    exit_code: ok ? EXIT.done : EXIT.failed,
    engine: `${engine.version.name} ${engine.version.version}`,
    runtime: runtime ?? "the engine's own",
    took_ms: Math.round(performance.now() - begin),
    promises: promisesKept(attacks),
    attacks,
  };
}
