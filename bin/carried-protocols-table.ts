import { z } from "zod";
import { casesOf, examples, table, words } from "./table-form.ts";
import { mistake } from "./yaml-table.ts";

/** How one kind of protocol is recognized; `ELSEWHERE` in its text is replaced by the text common to all kinds. */
const kind = z.strictObject({
  programs: words,
  schemes: words,
  says: z.string().min(1),
  examples,
});

/** Rejects a name in two rows: it would always be reported as the first. */
function refuseTwice(kinds: Readonly<Record<string, z.infer<typeof kind>>>, file: string): void {
  for (const key of ["programs", "schemes"] as const) {
    const seen = new Map<string, string>();
    for (const [row, each] of Object.entries(kinds))
      for (const word of each[key]) {
        const other = seen.get(word);
        if (other !== undefined)
          throw mistake(`${file}: ${row}`, `${key}: ${word} stands in "${other}" as well`);
        seen.set(word, row);
      }
  }
}

export const CARRIED_PROTOCOLS = table(
  "src/policy/carried-protocols.yaml",
  z.strictObject({ elsewhere: z.string(), kinds: z.record(z.string(), kind) }),
  ({ elsewhere, kinds }, file) => {
    refuseTwice(kinds, file);
    return {
      exports: {
        UNCARRIED: [
          "readonly { readonly kind: string; readonly programs: readonly string[]; readonly schemes: readonly string[]; readonly says: string }[]",
          Object.entries(kinds).map(([name, { programs, schemes, says }]) => ({
            kind: name,
            programs,
            schemes,
            says: says.replaceAll("ELSEWHERE", elsewhere),
          })),
        ],
      },
      examples: Object.entries(kinds).flatMap(([name, each]) =>
        casesOf("UNCARRIED", `${file}: ${name}`, name, each.examples),
      ),
    };
  },
);
