import { execFileSync } from "node:child_process";
import { statfsSync } from "node:fs";
import { chmod } from "node:fs/promises";
import { tmpdir } from "node:os";
import { startBox } from "../../../src/docker/box/start-box.ts";
import type { BoxRequest } from "../../../src/docker/box/prepare-box.ts";
import type { ExecResult, OwnedBox } from "../../../src/core/ports.ts";
import type { Engine } from "../../../src/docker/engine.ts";
import { engine } from "../../fixtures/engine-api.ts";
import { ROOT, skip } from "../../fixtures/engine.ts";
import type { Scratch } from "../../fixtures/scratch.ts";
import { standingBoxes } from "../../fixtures/standing-boxes.ts";

const ROOT_RUNS = process.getuid?.() === 0;
/** The owner of the workspace and its contents. */
export const OWNER = ROOT_RUNS ? 64_351 : (process.getuid?.() ?? 0);
/** Boxes are labelled with this uid, so that a test finds its own. */
const CALLER = ROOT_RUNS ? 0 : OWNER;

const OVERLAYFS = 0x794c7630;

/** Why tests with an overlay cannot run here, or false. */
export const noOverlay: string | false =
  skip ||
  (statfsSync(tmpdir()).type === OVERLAYFS &&
    `${tmpdir()} is on an overlay, which holds no other (TMPDIR=/a/folder/elsewhere)`);

export interface Opened extends AsyncDisposable {
  readonly box: OwnedBox;
  readonly warnings: readonly string[];
  /** The output of a shell line; ends the test if the line fails. */
  readonly sh: (line: string) => Promise<string>;
}

/** A box over `place/w` or another folder there, which is given to a user other than root. */
export async function openBox(
  place: Scratch,
  wanted: Partial<BoxRequest>,
  on: { readonly engine?: Engine; readonly stateDir?: string } = {},
): Promise<Opened> {
  const workspace = wanted.workspace ?? place.at("w");
  await chmod(place.path, 0o755);
  if (ROOT_RUNS) execFileSync("chown", ["-hR", `${OWNER}:${OWNER}`, workspace]);
  const warnings: string[] = [];
  const maker = {
    root: ROOT,
    uid: CALLER,
    home: "/nonexistent",
    stateDir: place.at("state"),
    engine,
    ...on,
    onWarning: (text: string) => void warnings.push(text),
  };
  const request: BoxRequest = {
    workspace,
    mode: "workspace-write",
    image: null,
    limits: { memory: 2 ** 29, cpus: null, pids: 128 },
    runtime: null,
    watchChanges: true,
    isolation: "overlay",
    keep: null,
    ...wanted,
  };
  const box = await startBox(maker, request, AbortSignal.timeout(60_000));
  return {
    box,
    warnings,
    sh: (line) => shell(box, line),
    [Symbol.asyncDispose]: () => box[Symbol.asyncDispose](),
  };
}

async function shell(box: OwnedBox, line: string): Promise<string> {
  const request = { words: ["bash", "-ec", line], timeoutMs: 30_000, keep: { head: 2 ** 20, tail: 0 } };
  const result: ExecResult = await box.exec(request, AbortSignal.timeout(60_000));
  const [out, err] = [result.stdout, result.stderr].map(({ head }) => Buffer.from(head).toString("utf8"));
  if (result.exit_code !== 0) throw new Error(`${line}: ${result.exit_code} ${result.reason}\n${err}`);
  return out ?? "";
}

/** Volumes and containers over a workspace. */
export async function leftOver(workspace: string): Promise<readonly string[]> {
  const label = `dev.harness.workspace=${workspace}`;
  const filters = { label: [label] };
  const containers = await standingBoxes(label);
  const { Volumes } = await engine.api.listVolumes({ filters });
  return [...containers.map(({ Id }) => Id), ...(Volumes ?? []).map(({ Name }) => Name)];
}
