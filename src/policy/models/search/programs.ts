import type { Model } from "../model.ts";
import { FD } from "./fd.ts";
import { FIND } from "./find.ts";
import { GREPS } from "./grep.ts";
import { SEARCHERS } from "./searchers.ts";
import { SOURCE_TOOLS } from "./source-tools.ts";
import { VIEWERS } from "./viewers.ts";
import { PARALLEL, XARGS } from "./xargs.ts";

/** What searches names and texts, and what runs commands for each of them. */
export const SEARCHING: Readonly<Record<string, Model>> = {
  ...GREPS,
  ...SEARCHERS,
  ...SOURCE_TOOLS,
  ...VIEWERS,
  find: FIND,
  fd: FD,
  fdfind: FD,
  xargs: XARGS,
  parallel: PARALLEL,
};
