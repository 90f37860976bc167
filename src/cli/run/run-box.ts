import { noteTo } from "../note.ts";
import { type LazyBox, lazyBox } from "./lazy-box.ts";
import type { Play } from "./play.ts";

/** The box of a run: kept where the run is parked, and the kept one where it goes on. */
export function boxFor(
  { settings, session, workspace, flags, reprise }: Play,
  onReady: Parameters<typeof lazyBox>[1],
): LazyBox {
  const warn = noteTo(flags.quiet);
  return lazyBox(
    async (signal) => {
      const { openBoxFor } = await import("../wire.ts");
      const opening = {
        settings,
        workspace,
        runtime: flags.runtime ?? null,
        watchChanges: true,
        keep: session.id,
        parks: true,
        takesUp: reprise?.parked.kept,
      };
      return openBoxFor({ ...opening, warn }, signal);
    },
    onReady,
    { warn },
  );
}
