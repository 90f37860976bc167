import { createHmac } from "node:crypto";
import * as z from "zod";
import { CAUSES } from "../../core/errors.ts";
import { boxFilter, boxOf } from "../box-labels.ts";
import type { Engine } from "../engine.ts";
import type { HostFile } from "../protect/replaced.ts";
import type { PausedRunner } from "../runner/runner-client.ts";
import { KEY_BYTES } from "../runner/runner-frames.ts";
import type { OfSession } from "./parked-files.ts";

/** The layers of a frozen box are mounted already, and bear no second mount: by this volume they can be looked into. */
export async function frozenVolume(
  engine: Engine,
  { uid, stateDir, session }: OfSession,
): Promise<string | undefined> {
  const { Volumes } = await engine.api.listVolumes({ filters: boxFilter(uid) });
  const own = (Volumes ?? []).find(({ Labels }) => {
    const parks = boxOf(Labels)?.parks;
    return parks?.session === session && parks.stateDir === stateDir;
  });
  return own?.Name;
}

/** A named job of a box that is parked: all that was heard of it, and how it ended if it has. */

const bytes = z.base64();
const stream = z.strictObject({ head: bytes, tail: bytes });
const counted = z.strictObject({ total: z.number(), lost: z.number() });

const blockedConnection = z.strictObject({
  host: z.string(),
  port: z.number(),
  method: z.string().nullable(),
  rule: z.string(),
  reason: z.string(),
  times: z.number(),
});

const result = z.strictObject({
  exit_code: z.number(),
  cause: z.enum(CAUSES).nullable(),
  reason: z.string(),
  duration_ms: z.number(),
  timed_out: z.boolean(),
  killed: z.boolean(),
  leftovers: z.number(),
  blocked: z.array(z.string()),
  blocked_connections: z.array(blockedConnection).readonly().exactOptional(),
  quarantined: z.array(z.strictObject({ from: z.string(), to: z.string().nullable(), takeBack: z.string() })),
  peak: z.strictObject({ memory_bytes: z.number(), pids: z.number() }),
  stdout: counted,
  stderr: counted,
});

const keptJob = z.strictObject({
  name: z.string(),
  /** By whoever started it. */
  noted: z.string(),
  folder: z.string(),
  /** Its number towards the runner. */
  call: z.int(),
  /** How long it has run. */
  ms: z.number(),
  why: z.enum(["cancelled", "disk", "input"]).nullable(),
  stdout: stream,
  stderr: stream,
  errors: bytes,
  result: result.nullable(),
});

export type KeptJob = z.infer<typeof keptJob>;

/** What it takes to take a frozen box up again. */
export interface ParkedBox {
  readonly container: string;
  /** All of the container's: they tell what it was made as, and who it belongs to. */
  readonly labels: Readonly<Record<string, string>>;
  /** In the workspace's stead. */
  readonly volume: string | null;
  /** Whether it was made with lists of users of the host's. */
  readonly named: boolean;
  /** The folder of its network on the host; null where it has none. */
  readonly network: string | null;
  /** What its mounts lay over when it was verified. */
  readonly files: readonly HostFile[];
  readonly runner: PausedRunner;
  readonly jobs: readonly KeptJob[];
}

const digits = z.string().regex(/^\d+$/);

const form = z.strictObject({
  form: z.literal(4),
  container: z.string().regex(/^[0-9a-f]{64}$/),
  labels: z.record(z.string(), z.string()),
  volume: z.string().nullable(),
  named: z.boolean(),
  network: z.string().nullable(),
  files: z.array(z.strictObject({ path: z.string(), dev: digits, ino: digits, born: digits })),
  key: z.string().regex(new RegExp(`^[0-9a-f]{${KEY_BYTES * 2}}$`)),
  next: z.int().min(1).max(0xffff_ffff),
  asks: z.array(z.strictObject({ call: z.int().min(0), payload: z.base64() })),
  jobs: z.array(keptJob),
});

const whole = z.strictObject({ seal: z.string(), box: z.unknown() });

/** A word that was changed by mistake shows; against somebody who can read the key there is no seal. */
const sealOf = (key: string, box: string): string => createHmac("sha256", key).update(box).digest("hex");

export function parkedText(parked: ParkedBox): string {
  const { container, labels, volume, named, network, files, runner, jobs } = parked;
  const key = runner.key.toString("hex");
  const asks = runner.asks.map(({ call, payload }) => ({ call, payload: payload.toString("base64") }));
  const { next } = runner;
  const box = { form: 4, container, labels, volume, named, network, files, key, next, asks, jobs };
  return JSON.stringify({ seal: sealOf(key, JSON.stringify(box)), box });
}

/** Undefined for anything that is not, to the letter, what was written. */
export function readParked(text: string): ParkedBox | undefined {
  const outer = whole.safeParse(jsonOf(text));
  const inner = form.safeParse(outer.data?.box);
  if (!outer.success || !inner.success) return undefined;
  const { container, labels, volume, named, network, files, key, next, asks, jobs } = inner.data;
  if (outer.data.seal !== sealOf(key, JSON.stringify(outer.data.box))) return undefined;
  const late = asks.map(({ call, payload }) => ({ call, payload: Buffer.from(payload, "base64") }));
  return {
    container,
    labels,
    volume,
    named,
    network,
    files,
    runner: { key: Buffer.from(key, "hex"), next, asks: late },
    jobs,
  };
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
