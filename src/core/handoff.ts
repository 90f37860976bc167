import * as z from "zod";

/** dangerous: the host runs or obeys it by itself. look: it runs when a person builds, tests, installs or pushes. */
export const TIERS = ["dangerous", "look"] as const;
export type Tier = (typeof TIERS)[number];

export const handoffForm = z.strictObject({
  path: z.string(),
  tier: z
    .enum(TIERS)
    .describe(
      "dangerous: the host obeys it by itself; look: the host obeys it when somebody builds or installs.",
    ),
  reason: z.string(),
});
/** A changed path that the host would later run or obey. */
export type Handoff = z.infer<typeof handoffForm>;
