import type { Model } from "../model.ts";
import { FORGES } from "./forges.ts";
import { LFS } from "./lfs.ts";
import { MERCURIAL } from "./mercurial.ts";
import { OTHERS } from "./others.ts";
import { VIEWERS } from "./viewers.ts";

/** Version control besides git, and programs around it. */
export const VERSION_CONTROL: Readonly<Record<string, Model>> = {
  ...FORGES,
  ...MERCURIAL,
  ...OTHERS,
  ...VIEWERS,
  "git-lfs": LFS,
};
