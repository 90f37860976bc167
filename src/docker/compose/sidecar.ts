import { ailing, type Health, healthy } from "../../core/health.ts";

/** How one sidecar ended up. None of these ends a run. */
export interface Sidecar {
  readonly service: string;
  readonly state: "running" | "unhealthy" | "no-image" | "failed";
  readonly detail: string;
}

/** What serves when a sidecar does not. */
const INSTEAD: Readonly<Record<string, string>> = {
  qdrant: "the embedded index serves instead",
  ollama: "an Ollama on the host serves instead, if there is one",
};

/** A sidecar as `doctor` and the set-up report it: never a failure, for harness works without. */
export function healthOfSidecar({ service, state, detail }: Sidecar): Health {
  const id = `sidecar.${service}`;
  if (state === "running") return healthy(id, detail);
  const instead = INSTEAD[service];
  return ailing(id, instead === undefined ? detail : `${detail}; ${instead}`);
}
