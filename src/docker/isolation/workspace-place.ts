import type { Owner } from "../../boxes/box-labels.ts";
import type { Engine } from "../engine.ts";
import type { Layer } from "../../boxes/layers/layer-record.ts";

/** A volume in the workspace's stead. */
export interface VolumeRequest {
  readonly engine: Engine;
  readonly workspace: { readonly path: string; readonly uid: number; readonly gid: number };
  readonly stateDir: string;
  readonly session: string;
  readonly owner: Owner;
  readonly volume: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Any image that is there; nothing of it is run. */
  readonly image: string;
  /** Where the engine keeps its data, by its own word. */
  readonly engineRoot: string;
  /** Where what is changed outlives the box; null: it does not. */
  readonly layer: Layer | null;
  readonly onWarning: (text: string) => void;
}
