import { isEmpty } from "../../boxes/workspace/session-layer.ts";
import { type Layer, layerOf } from "../../boxes/workspace/layer-record.ts";
import type { ConfigRequest } from "../../config/load-config.ts";
import type { SettingKey } from "../../config/settings-schema.ts";
import { hostAt, isDefaultEngine, namedCluster } from "../named-engine.ts";
import type { Host } from "../host.ts";
import { openSessions, type SessionChoice, sessionsWorkspace } from "./session-access.ts";

/**
 * What a continued session says of the settings: its copy lies on one engine, or came back from pods of one cluster,
 * and the session continues there without a flag. Flags take precedence; a contradicting flag is refused where the box
 * is made.
 */
export interface TakenUp {
  /** The host that uses that engine. */
  readonly host: Host;
  /** Applied as if they were flags. */
  readonly said: ConfigRequest["flags"];
  /** Where the session continues, if that differs from the place of a new session. */
  readonly note?: string;
}

/** The same for the session that a run continues; undefined if the run begins a new one. */
export async function takenUpBy(
  host: Host,
  { resume, fork, continue: last }: SessionChoice,
  folder: string,
): Promise<TakenUp | undefined> {
  if (fork === true || (resume === undefined && !last)) return undefined;
  using store = openSessions(host, () => undefined);
  const id = resume === undefined ? store.last(await sessionsWorkspace(folder)) : store.open(resume).id;
  return id === undefined ? undefined : takenUp(host, id);
}

/** Undefined: the session has no copy that waits to be applied. */
export async function takenUp(host: Host, id: string): Promise<TakenUp | undefined> {
  const layer = await copyOf(host, id);
  if (layer === undefined) return undefined;
  const taken = await hostOf(host, layer);
  const said = new Map<string, { readonly key: SettingKey; readonly value: unknown }>();
  said.set(`the copy of ${id}`, { key: "isolation", value: "copy" });
  if (taken.engine === host.engine) return { host, said };
  said.set(`the engine of ${id}`, { key: "engine", value: taken.engine });
  return { host: taken, said, note: `continues at ${taken.engine}, where the changes of ${id} are` };
}

/** The place of the session's copy, if that is not the engine that is used anyway. */
export async function liesElsewhere(host: Host, id: string): Promise<string | undefined> {
  const layer = await copyOf(host, id);
  if (layer === undefined) return undefined;
  const { engine: kind, at } = layer;
  const isCluster = (await namedCluster(host)) !== undefined;
  if (kind !== undefined) return isCluster ? undefined : (at ?? "a cluster");
  return at === undefined || (!isCluster && (await isDefaultEngine(host, at))) ? undefined : at;
}

async function copyOf({ places }: Host, id: string): Promise<Layer | undefined> {
  const layer = await layerOf(places.state, id);
  return layer?.isolation === "copy" && !(await isEmpty(layer)) ? layer : undefined;
}

/** A copy that came back from pods may go into pods of any named cluster. */
async function hostOf(host: Host, layer: Layer): Promise<Host> {
  if (layer.engine === undefined) return hostAt(host, layer);
  if (host.engine !== null || (await namedCluster(host)) !== undefined) return host;
  return { ...host, engine: layer.at ?? "kubernetes:" };
}
