import { z } from "zod";
import { EXIT, HarnessError } from "../../core/errors.ts";
import { visibleLine } from "../../core/text/visible.ts";
import { QdrantApi, resultOf } from "./qdrant-api.ts";
import type { QdrantServer } from "./qdrant-nodes.ts";

/** Queries with fusion need 1.10, tenants 1.11, facets 1.12, the filter by vectors 1.13. */
const OLDEST = { major: 1, minor: 13 } as const;

const about = z.object({ title: z.string().regex(/qdrant/i), version: z.string() });

/** Refuses a server that is no Qdrant or lacks a needed feature. Returns its version for display. */
export async function checkedVersion(api: QdrantApi, signal: AbortSignal): Promise<string> {
  const { version } = await api.ask((calls, init) => calls.root({}, init), {
    what: "report its version",
    form: about,
    signal,
  });
  const text = visibleLine(version);
  const unfit = unfitVersion(version);
  if (unfit === null) return text;
  throw new HarnessError(
    EXIT.failed,
    `Qdrant ${text} at ${api.url} ${unfit}`,
    "./start.sh   (or: harness config set search.store embedded)",
  );
}

/**
 * The version of a server that accepts our key: a server tells its version to everybody, but lists its collections only
 * with a valid key.
 */
export async function versionFor(server: QdrantServer, signal: AbortSignal): Promise<string> {
  const api = new QdrantApi(server);
  const text = await checkedVersion(api, signal);
  await api.ask((calls, init) => calls.getCollections({}, init), {
    what: "list its collections",
    form: resultOf(z.object({ collections: z.array(z.unknown()) })),
    signal,
  });
  return text;
}

/** Why a server of this version cannot be used, as a phrase that follows its name; null if it can. */
function unfitVersion(version: string): string | null {
  const found = parsed(version);
  const oldest = `${OLDEST.major}.${OLDEST.minor}`;
  if (Number.isNaN(found.major) || found.major > OLDEST.major)
    return `is not known to harness: it needs ${OLDEST.major}.x, ${oldest} or later`;
  return reaches(found, OLDEST) ? null : `is too old: harness needs ${oldest} or later`;
}

interface Version {
  readonly major: number;
  readonly minor: number;
}

function parsed(version: string): Version {
  const [, major, minor] = /^v?(\d+)\.(\d+)/.exec(version) ?? [];
  return { major: Number(major), minor: Number(minor) };
}

const reaches = (found: Version, wanted: Version): boolean =>
  found.major === wanted.major && found.minor >= wanted.minor;
