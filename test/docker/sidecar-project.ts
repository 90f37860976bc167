import { randomBytes } from "node:crypto";
import type Docker from "dockerode";
import type { ContainerInspectInfo } from "dockerode";
import { planSidecar, type SidecarPlan, type SidecarService } from "../../src/docker/sidecars.ts";

/** A separate project for one test; everything with its name is removed when it is disposed. */
export interface Project extends AsyncDisposable {
  readonly name: string;
  /** A service `memo` that writes MARK into its volume at start; `keys` are added and override others. */
  readonly plan: (keys?: Partial<SidecarService>) => SidecarPlan;
  readonly memo: () => Promise<ContainerInspectInfo>;
  /** Everything of the project that the engine holds, by name. */
  readonly remains: () => Promise<readonly string[]>;
}

const WRITE = 'echo "$MARK" >> /data/log; cat /data/log; trap "exit 0" TERM; sleep 600 & wait';

/** A shell health check that runs often. */
export const probe = (
  script: string,
  intervalMs = 200,
  retries = 50,
): NonNullable<SidecarService["healthcheck"]> => ({
  test: ["CMD", "sh", "-c", script],
  intervalMs,
  timeoutMs: 30_000,
  startPeriodMs: 0,
  retries,
});

export function throwAwayProject(api: Docker, image: string): Project {
  const name = `harness-test-${randomBytes(4).toString("hex")}`;
  const memo: SidecarService = {
    image,
    command: ["sh", "-c", WRITE],
    environment: { MARK: "one" },
    ports: [],
    volumes: [{ volume: "data", target: "/data" }],
    healthcheck: probe("test -s /data/log"),
    memoryBytes: 64 * 2 ** 20,
    restart: "no",
  };
  return {
    name,
    plan: (keys = {}) => planSidecar({ name, services: { memo: { ...memo, ...keys } } }, "memo"),
    memo: () => api.getContainer(`${name}-memo-1`).inspect(),
    remains: async () => {
      const all = await everythingOf(api, name);
      return all.map(({ name }) => name).toSorted();
    },
    [Symbol.asyncDispose]: async () => {
      for (const { remove } of await everythingOf(api, name)) await remove();
    },
  };
}

interface Piece {
  readonly name: string;
  readonly remove: () => Promise<unknown>;
}

/** By name, so that things without any label are found too; containers first. */
async function everythingOf(api: Docker, project: string): Promise<readonly Piece[]> {
  const filters = { name: [project] };
  const containers = await api.listContainers({ all: true, filters });
  const networks = await api.listNetworks({ filters });
  const { Volumes: volumes } = await api.listVolumes({ filters });
  return [
    ...containers.map(({ Id, Names }) => ({
      name: `container ${Names[0] ?? ""}`,
      remove: () => api.getContainer(Id).remove({ force: true, v: true }),
    })),
    ...networks.map(({ Id, Name }) => ({
      name: `network ${Name}`,
      remove: () => api.getNetwork(Id).remove(),
    })),
    ...(volumes ?? []).map(({ Name }) => ({
      name: `volume ${Name}`,
      remove: () => api.getVolume(Name).remove(),
    })),
  ];
}
