import * as z from "zod";
import { counted } from "./text/short-lists.ts";

/** Packages that package managers have installed in a box. */

export const packageForm = z.strictObject({
  ecosystem: z.string().describe("npm, pip, cargo, go, maven, composer, bundler, or apt."),
  name: z.string(),
  version: z.string(),
});
export type Package = z.output<typeof packageForm>;

export const installedForm = z.strictObject({
  total: z.int().min(0).describe("Packages that are installed."),
  new: z.int().min(0).describe("How many of them were not installed before."),
  packages: z.array(packageForm).readonly().describe("The first 500 of the new ones."),
  incomplete: z
    .literal(true)
    .exactOptional()
    .describe("There were more than could be examined. Left out otherwise."),
});
export type Installed = z.output<typeof installedForm>;

/** Counts by ecosystem: `npm 300, pip 12`. */
export function byEcosystem(packages: readonly Pick<Package, "ecosystem">[]): string {
  const counts = new Map<string, number>();
  for (const { ecosystem } of packages) counts.set(ecosystem, (counts.get(ecosystem) ?? 0) + 1);
  return [...counts].map(([name, count]) => `${name} ${count}`).join(", ");
}

/** One line for people. */
export const installedWords = ({ total, new: fresh, incomplete }: Omit<Installed, "packages">): string =>
  `${counted(total, "package")}, ${fresh} of them new${incomplete === true ? "; there were more than could be examined" : ""}`;
