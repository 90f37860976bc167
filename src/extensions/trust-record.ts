import * as z from "zod";

/**
 * The stored form of what a person has trusted in one project. Loaded only if there is a record: most projects have
 * none.
 */
const fileForm = z.strictObject({
  path: z.string(),
  text: z.string(),
  sha256: z.string(),
  bytes: z.int().optional(),
});
export const recordForm = z.strictObject({
  form: z.literal(1),
  top: z.string(),
  dev: z.string(),
  ino: z.string(),
  trusted: z.array(z.strictObject({ kind: z.string(), at: z.string(), files: z.array(fileForm).min(1) })),
  declined: z.array(z.strictObject({ kind: z.string(), digest: z.string() })),
});
export type RecordForm = typeof recordForm;
export type TrustRecord = z.infer<typeof recordForm>;
