import type { Owner } from "../../boxes/box-labels.ts";
import type { Engine } from "../engine.ts";
import type { Layer } from "../../boxes/layers/layer-record.ts";

/** A volume in place of the workspace. */
export interface VolumeRequest {
  readonly engine: Engine;
  readonly workspace: { readonly path: string; readonly uid: number; readonly gid: number };
  readonly stateDir: string;
  readonly session: string;
  readonly owner: Owner;
  readonly volume: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Any existing image; nothing of it is run. */
  readonly image: string;
  /** The engine's data folder, as the engine reports it. */
  readonly engineRoot: string;
  /** Where changes outlive the box; null: they do not. */
  readonly layer: Layer | null;
  readonly onWarning: (text: string) => void;
}
