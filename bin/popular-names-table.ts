/** The table of widely used packages: a list per ecosystem, and examples of names close to one in a list. */
import { z } from "zod";
import { casesOf, examples, table, words } from "./table-form.ts";

export const POPULAR_NAMES = table(
  "src/vet/popular-names.yaml",
  z.strictObject({ npm: words, pip: words, cargo: words, composer: words, gem: words, go: words, examples }),
  ({ examples: given, ...form }, file) => ({
    exports: { POPULAR: ["Readonly<Record<string, readonly string[]>>", form] },
    examples: casesOf("POPULAR", file, "", given),
  }),
);
