import type { Box } from "../../core/ports.ts";
import type { Catalog } from "../catalog/catalog.ts";
import type { PathRules } from "../read/found.ts";
import type { SearchStore } from "../store.ts";
import type { Trust } from "../words.ts";
import type { Cutting } from "./cutting.ts";

export interface UpdateParts {
  /** Over the workspace. */
  readonly box: Box;
  /** On the host: absolute and resolved. */
  readonly workspace: string;
  readonly catalog: Catalog;
  readonly store: SearchStore;
  /** The id of the index. */
  readonly index: string;
  readonly trust: Trust;
  readonly rules: PathRules;
  /** Made when it is first needed, for so many files. */
  readonly cutting: (files: number) => Cutting;
  /** Changes with whatever makes other pieces of the same text. */
  readonly version: string;
  readonly largest: number;
  readonly knownBy?: "stamps" | "times";
  readonly onProgress?: (progress: Progress) => void;
}

export interface Progress {
  readonly done: number;
  readonly total: number;
}
