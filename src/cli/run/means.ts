import type { Config } from "../../config/load.ts";
import type { Settings } from "../../config/schema.ts";
import type { Session } from "../../core/session.ts";
import { noteTo } from "../note.ts";
import { type RunIndex, runIndex } from "../search/run-index.ts";
import { unlessAborted } from "./assemble.ts";
import { type LazyBox, lazyBox } from "./lazy-box.ts";

/** What a run works with that is made when it is first wanted. */

interface Of {
  readonly settings: Settings;
  readonly origins: Config["origins"];
  readonly workspace: string;
  readonly session: Session;
  readonly flags: { readonly quiet: boolean; readonly runtime?: string | undefined };
  readonly signal: AbortSignal;
}

export const indexFor = ({ settings, origins, workspace, session, signal }: Of, box: LazyBox): RunIndex =>
  runIndex({
    settings: () => settings,
    origins,
    workspace,
    session: session.id,
    box: () => unlessAborted(box.box(), signal),
  });

export const boxFor = (
  { settings, session, workspace, flags }: Of,
  onReady: Parameters<typeof lazyBox>[1],
): LazyBox =>
  lazyBox(async (signal) => {
    const { openBoxFor } = await import("../wire.ts");
    const opening = {
      settings,
      workspace,
      runtime: flags.runtime ?? null,
      watchChanges: true,
      keep: session.id,
    };
    return openBoxFor({ ...opening, warn: noteTo(flags.quiet) }, signal);
  }, onReady);
