import { existsSync } from "node:fs";
import { readFile, realpath, writeFile } from "node:fs/promises";
import { homedir, hostname, release, totalmem, userInfo } from "node:os";
import path from "node:path";
import type { Config } from "../../config/load-config.ts";
import { formatSize } from "../../core/wording.ts";
import { errorCode, EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { MIN_SECRET_LENGTH } from "../../core/secrets.ts";
import {
  type BugReport,
  bugReportText,
  holdsOf,
  LEFT_OUT,
  type PrivateData,
  redactor,
} from "../../telemetry/bug-report.ts";
import { keptLogs } from "../../telemetry/diagnostics-log.ts";
import { checkUp } from "./checkup.ts";
import { diagnosticsFolder, settingsSet, versions } from "../diagnostics.ts";
import type { Host } from "../host.ts";
import { makeFolder } from "../../platform/folders.ts";

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
  return { file: wanted, bytes: Buffer.byteLength(text), holds: holdsOf(report), left_out: LEFT_OUT };
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
    ...meantBy(quoted),
  ]);
};

function meantBy(quoted: string): readonly string[] {
  try {
    return [String(JSON.parse(quoted))];
  } catch {
    return [];
  }
}
