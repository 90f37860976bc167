import { placesFrom } from "../config/places.ts";
import type { SessionStore } from "../core/session.ts";
import { openStore } from "../sessions/store.ts";

/** Owned by wire.ts: constructs what remembers. */
export const openSessions = (warn: (text: string) => void): SessionStore =>
  openStore(placesFrom(process.env).state, { warn });
