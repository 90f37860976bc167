import { lstat } from "node:fs/promises";
import { ownerLabels, thisProcess } from "../../boxes/box-record.ts";
import { podUserOf } from "../../boxes/workspace/box-workspace.ts";
import { boxImage, wantedImage } from "../../docker/box-image.ts";
import type { Engine } from "../../docker/engine.ts";
import {
  type Bases,
  type EnvironmentFiles,
  type EnvironmentRecord,
  finishRecord,
} from "../../docker/environments/recipe.ts";
import { podImage, removePodImages } from "../../docker/environments/environment-store.ts";
import { isInRegistry, pushImage, registryLogin } from "../../docker/push-image.ts";
import { type Host, packageRoot } from "../host.ts";
import { pushedImage } from "./pod-environment.ts";

/** Environments in a registry, from which pods get them. */
interface Pushing {
  readonly host: Host;
  /** A real path. */
  readonly workspace: string;
  readonly engine: Engine;
  readonly files: EnvironmentFiles;
  readonly record: EnvironmentRecord;
  readonly bases: Bases;
  /** A repository, without a tag. */
  readonly registry: string;
  readonly onLine: (text: string) => void;
  readonly signal: AbortSignal;
}

export interface PushedEnvironment {
  readonly record: EnvironmentRecord;
  /** The image that pods start from. */
  readonly image: string;
  /** `kept`: the registry already has it from an earlier push. */
  readonly how: "kept" | "pushed";
  /** How many layers were sent. */
  readonly moved: number;
}

/** Pushes a built environment to the registry, unless it is already there, and notes that in the record. */
export async function pushEnvironment(pushing: Pushing): Promise<PushedEnvironment> {
  const { host, workspace, engine, files, record, bases, registry, onLine, signal } = pushing;
  const login = await registryLogin({ env: host.env, repository: registry, apart: workspace, signal });
  const before = record.pushed?.registry === registry ? pushedImage(record) : undefined;
  if (before !== undefined && (await isInRegistry(engine, { image: before, repository: registry, login })))
    return { record, image: before, how: "kept", moved: 0 };
  const [{ id: sandbox }, { tag: sandboxTag }, owner, stats] = await Promise.all([
    boxImage(engine, packageRoot, null),
    wantedImage(engine, packageRoot),
    thisProcess(),
    lstat(workspace),
  ]);
  const image = await podImage({
    engine,
    record,
    sandbox,
    lacksRunner: record.recipe.image !== null,
    owner: podUserOf(stats),
    labels: ownerLabels(host.uid, owner),
    signal,
  });
  const tag = `${record.key}-${record.id}`;
  const { digest, moved } = await pushImage(engine, {
    image,
    repository: registry,
    tag,
    login,
    onLine,
    signal,
  });
  const at = new Date().toISOString();
  const { arch } = engine.version;
  const { base, stages } = bases;
  const pushed = {
    registry,
    tag,
    digest,
    at,
    bases: { base, stages: [...stages] },
    sandbox: sandboxTag,
    arch,
  };
  const now = { ...record, pushed };
  await finishRecord(files, now);
  await removePodImages(engine, record.id);
  return { record: now, image: pushedImage(now) ?? "", how: "pushed", moved };
}
