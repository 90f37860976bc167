import { findPrefix, prefixTable } from "./match.ts";
import { HOME_STARTUP } from "./startup-home.ts";
import { SYSTEM_STARTUP } from "./startup-system.ts";

const IN_HOME = prefixTable(HOME_STARTUP);
const IN_SYSTEM = prefixTable(SYSTEM_STARTUP);

/** Why a write there is a trap for the host: by a folded path from a home folder. */
export const startupInHome = (folded: string): string | null => findPrefix(IN_HOME, folded);

/** By a folded path from `/`. */
export const startupOfSystem = (folded: string): string | null => findPrefix(IN_SYSTEM, folded);
