import * as z from "zod";
import { CAUSES } from "../../core/tool.ts";

/** A named job of a box that is parked: all that was heard of it, and how it ended if it has. */

const bytes = z.base64();
const stream = z.strictObject({ head: bytes, tail: bytes });
const counted = z.strictObject({ total: z.number(), lost: z.number() });

const result = z.strictObject({
  exit_code: z.number(),
  cause: z.enum(CAUSES).nullable(),
  reason: z.string(),
  duration_ms: z.number(),
  timed_out: z.boolean(),
  killed: z.boolean(),
  leftovers: z.number(),
  blocked: z.array(z.string()),
  quarantined: z.array(z.strictObject({ from: z.string(), to: z.string().nullable(), takeBack: z.string() })),
  peak: z.strictObject({ memory_bytes: z.number(), pids: z.number() }),
  stdout: counted,
  stderr: counted,
});

export const keptJob = z.strictObject({
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
