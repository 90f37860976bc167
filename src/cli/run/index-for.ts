import type { Config } from "../../config/load.ts";
import type { Settings } from "../../config/schema.ts";
import type { Session } from "../../core/session.ts";
import { type RunIndex, runIndex } from "../search/run-index.ts";
import { unlessAborted } from "./assemble.ts";
import type { LazyBox } from "./lazy-box.ts";

interface Of {
  readonly settings: Settings;
  readonly origins: Config["origins"];
  readonly workspace: string;
  readonly session: Session;
  readonly signal: AbortSignal;
}

/** What finds code for a run. */
export const indexFor = ({ settings, origins, workspace, session, signal }: Of, box: LazyBox): RunIndex =>
  runIndex({
    settings: () => settings,
    origins,
    workspace,
    session: session.id,
    box: () => unlessAborted(box.box(), signal),
  });
