import { z } from "zod";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { visibleLine } from "../../core/visible.ts";
import type { QdrantApi } from "./api.ts";

/** Queries with fusion came with 1.10, tenants with 1.11, facets with 1.12, the filter by vectors with 1.13. */
const OLDEST = { major: 1, minor: 13 } as const;
/** Since this one rarity is counted over one workspace's words instead of over all that share a collection. */
const OWN_RARITY = { major: 1, minor: 19 } as const;

export interface ServerVersion {
  readonly text: string;
  readonly ownRarity: boolean;
}

const about = z.object({ title: z.string().regex(/qdrant/i), version: z.string() });

/** Asks who is there, and refuses a server that lacks what is needed. */
export async function checkedVersion(api: QdrantApi, signal: AbortSignal): Promise<ServerVersion> {
  const { version } = await api.ask((calls, init) => calls.root({}, init), {
    what: "say its version",
    form: about,
    signal,
  });
  const text = visibleLine(version);
  const [, major, minor] = /^v?(\d+)\.(\d+)/.exec(version) ?? [];
  const found = { major: Number(major), minor: Number(minor) };
  const remedy = "./start.sh   (or: harness config set search.store embedded)";
  if (major === undefined || found.major > OLDEST.major)
    throw new HarnessError(
      EXIT.failed,
      `Qdrant ${text} at ${api.url} is not known to harness: it needs 1.x, ${OLDEST.major}.${OLDEST.minor} or later`,
      remedy,
    );
  if (!reaches(found, OLDEST))
    throw new HarnessError(
      EXIT.failed,
      `Qdrant ${text} at ${api.url} is too old: harness needs ${OLDEST.major}.${OLDEST.minor} or later`,
      remedy,
    );
  return { text, ownRarity: reaches(found, OWN_RARITY) };
}

interface Version {
  readonly major: number;
  readonly minor: number;
}

const reaches = (found: Version, wanted: Version): boolean =>
  found.major === wanted.major && found.minor >= wanted.minor;
