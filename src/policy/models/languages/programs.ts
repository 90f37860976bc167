import type { Model } from "../model.ts";
import { AWKS } from "./awk.ts";
import { CALCULATORS } from "./calculators.ts";
import { JQ } from "./jq.ts";
import { MARKUP } from "./markup.ts";
import { SED } from "./sed.ts";
import { SQLITE } from "./sqlite.ts";
import { TABLES } from "./tables.ts";
import { YQ } from "./yq.ts";

/** Programs that are told what to do in a small language of their own. */
export const LANGUAGES: Readonly<Record<string, Model>> = {
  ...AWKS,
  ...CALCULATORS,
  ...MARKUP,
  ...TABLES,
  sed: SED,
  gsed: SED,
  jq: JQ,
  gojq: JQ,
  jaq: JQ,
  yq: YQ,
  sqlite: SQLITE,
  sqlite3: SQLITE,
};
