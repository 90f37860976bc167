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

export type Labels = Readonly<Record<string, string>>;

/** True for what harness or compose made for this project from a file of ours. */
export const isOurs = (labels: Labels | null | undefined, project: string, sidecar: string): boolean =>
  labels?.[LABEL.project] === project && labels[LABEL.sidecar] === sidecar;

/** An engine's filter that matches everything of ours in the project. */
export const ownFilter = (project: string): { label: string[] } => ({
  label: [`${LABEL.project}=${project}`, LABEL.sidecar],
});
