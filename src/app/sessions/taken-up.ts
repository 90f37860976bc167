import { isEmpty } from "../../boxes/layers/hold-layer.ts";
import { type Layer, layerOf } from "../../boxes/layers/layer-record.ts";
import type { ConfigRequest } from "../../config/load-config.ts";
import type { SettingKey } from "../../config/settings-schema.ts";
import { hostAt, isAsked, namedCluster } from "../named-engine.ts";
import type { Host } from "../host.ts";
import { openSessions, type SessionChoice, sessionsWorkspace } from "./session-access.ts";

/**
 * What a session that is gone on with says of the settings: its copy lies on one engine, or came back from pods of one
 * cluster, and it goes on there without being told. A flag goes before it; one that says otherwise is refused where its box
 * is made.
 */
export interface TakenUp {
  /** Who asks that engine. */
  readonly host: Host;
  /** As flags that nobody typed. */
  readonly said: ConfigRequest["flags"];
  /** Where it goes on, if that is not where a new one would. */
  readonly note?: string;
}

/** The same of the session that a run goes on with; undefined where it begins another one. */
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

/** undefined: no copy of the session's waits to be applied. */
export async function takenUp(host: Host, id: string): Promise<TakenUp | undefined> {
  const layer = await copyOf(host, id);
  if (layer === undefined) return undefined;
  const taken = await hostOf(host, layer);
  const said = new Map<string, { readonly key: SettingKey; readonly value: unknown }>();
  said.set(`the copy of ${id}`, { key: "isolation", value: "copy" });
  if (taken.engine === host.engine) return { host, said };
  said.set(`the engine of ${id}`, { key: "engine", value: taken.engine });
  return { host: taken, said, note: `goes on at ${taken.engine}, where what ${id} changed lies` };
}

/** Another engine than the one that is asked anyway has the copy of a session. */
export async function liesElsewhere(host: Host, id: string): Promise<string | undefined> {
  const layer = await copyOf(host, id);
  if (layer === undefined) return undefined;
  const { engine: kind, at } = layer;
  const isCluster = (await namedCluster(host)) !== undefined;
  if (kind !== undefined) return isCluster ? undefined : (at ?? "a cluster");
  return at === undefined || (!isCluster && (await isAsked(host, at))) ? undefined : at;
}

async function copyOf({ places }: Host, id: string): Promise<Layer | undefined> {
  const layer = await layerOf(places.state, id);
  return layer?.isolation === "copy" && !(await isEmpty(layer)) ? layer : undefined;
}

/** What came back from pods may go into those of any cluster that is named. */
async function hostOf(host: Host, layer: Layer): Promise<Host> {
  if (layer.engine === undefined) return hostAt(host, layer);
  if (host.engine !== null || (await namedCluster(host)) !== undefined) return host;
  return { ...host, engine: layer.at ?? "kubernetes:" };
}
