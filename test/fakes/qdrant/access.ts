import type { IncomingMessage } from "node:http";

export interface Keys {
  readonly apiKey?: string;
  readonly readOnlyKey?: string;
}

interface Denial {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

/** Operations that need no key, as on a real server: its version is public. */
const OPEN = new Set(["root", "healthz", "livez", "readyz"]);
const READS =
  /^(?:get_|scroll_|count_|query_|search_|facet$|recommend_|discover_|collection_exists|telemetry|metrics)/;

/** A wrong key is refused in plain text; a key without enough rights, in the format of other answers. */
export function denialOf(
  { apiKey, readOnlyKey }: Keys,
  operation: string,
  { headers }: IncomingMessage,
): Denial | undefined {
  if (OPEN.has(operation) || (apiKey ?? readOnlyKey) === undefined) return undefined;
  const bearer = /^Bearer (.*)$/.exec(headers.authorization ?? "")?.[1];
  const key = headers["api-key"] ?? bearer;
  if (key === undefined) return plain("Must provide an API key or an Authorization bearer token");
  if (key === apiKey) return undefined;
  if (key !== readOnlyKey) return plain("Invalid API key or JWT");
  if (READS.test(operation)) return undefined;
  const status = { error: "Forbidden: Global manage access is required" };
  return { status: 403, type: "application/json", body: JSON.stringify({ status, time: 0 }) };
}

const plain = (body: string): Denial => ({ status: 401, type: "text/plain; charset=utf-8", body });
