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

/** How sidecars are found again. The com.docker.compose names are compose's own, so both tools see the same project. */
export const LABEL = {
  project: "com.docker.compose.project",
  service: "com.docker.compose.service",
  volume: "com.docker.compose.volume",
  network: "com.docker.compose.network",
  number: "com.docker.compose.container-number",
  oneOff: "com.docker.compose.oneoff",
  hash: "com.docker.compose.config-hash",
  /** Ours: without it nothing is kept, changed or removed. */
  sidecar: "dev.harness.sidecar",
} as const;

type Labels = Readonly<Record<string, string>>;

/** True for what harness or compose made for this project from a file of ours. */
export const isOurs = (labels: Labels | null | undefined, project: string, sidecar: string): boolean =>
  labels?.[LABEL.project] === project && labels[LABEL.sidecar] === sidecar;

/** An engine's filter that matches everything of ours in the project. */
export const ownFilter = (project: string): { label: string[] } => ({
  label: [`${LABEL.project}=${project}`, LABEL.sidecar],
});
