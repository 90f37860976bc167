import { randomUUID } from "node:crypto";
import { boxLabels, type Owner, UID_LABEL } from "../../../src/boxes/box-record.ts";
import { engine } from "../../fixtures/engine-api.ts";
import { image } from "../../fixtures/engine.ts";

interface BoxSpec {
  readonly uid: number;
  readonly owner: Owner;
  readonly session?: string;
  readonly workspace?: string;
}

const labelsFor = ({ uid, owner, session = "s", workspace = "/repo" }: BoxSpec): Record<string, string> => ({
  ...boxLabels({
    uid,
    owner,
    session,
    workspace,
    created: new Date().toISOString(),
    isolation: "bind",
    mode: "workspace-write",
  }),
});

/** Creates a cheap container with a box's labels; returns its id. */
export async function realBox(wanted: BoxSpec, labels = labelsFor(wanted)): Promise<string> {
  const container = await engine.api.createContainer({
    Image: image,
    Cmd: ["sleep", "600"],
    Labels: labels,
    HostConfig: { NetworkMode: "none" },
  });
  await container.start();
  return container.id;
}

export async function realVolume(wanted: BoxSpec): Promise<string> {
  const Name = `harness-test-${randomUUID()}`;
  await engine.api.createVolume({ Name, Labels: labelsFor(wanted) });
  return Name;
}

const filters = (uid: number): { label: string[] } => ({ label: [`${UID_LABEL}=${uid}`] });

/** Ids of the containers and names of the volumes of a test user. */
export async function leftOf(uid: number): Promise<readonly string[]> {
  const containers = await engine.api.listContainers({ all: true, filters: filters(uid) });
  const volumes = await engine.api.listVolumes({ filters: filters(uid) });
  return [...containers.map(({ Id }) => Id), ...(volumes.Volumes ?? []).map(({ Name }) => Name)].toSorted();
}

/** Removes what a test made for its users, at the end of its scope. */
export const cleared = (...uids: readonly number[]): AsyncDisposable => ({
  [Symbol.asyncDispose]: async () => {
    for (const uid of uids) {
      const containers = await engine.api.listContainers({ all: true, filters: filters(uid) });
      await Promise.all(containers.map(({ Id }) => engine.api.getContainer(Id).remove({ force: true })));
      const { Volumes } = await engine.api.listVolumes({ filters: filters(uid) });
      await Promise.all((Volumes ?? []).map(({ Name }) => engine.api.getVolume(Name).remove()));
    }
  },
});
