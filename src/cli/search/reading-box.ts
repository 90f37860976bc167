import type { Settings } from "../../config/schema.ts";
import type { OwnedBox } from "../../core/ports.ts";

/** A box that can only read the workspace, whatever the mode of runs is. */
export async function readingBox(
  settings: Settings,
  workspace: string,
  warn: (text: string) => void,
  signal: AbortSignal,
): Promise<OwnedBox> {
  const [{ openBoxFor }, { ROOT_OWNED }] = await Promise.all([
    import("../wire.ts"),
    import("../../docker/box/workspace.ts"),
  ]);
  const isolation = settings.isolation === "copy" ? ("copy" as const) : ("bind" as const);
  const shape = { ...settings, mode: "read-only" as const, isolation, allow_domains: [] as string[] };
  const opening = { settings: shape, workspace, runtime: null, watchChanges: false, keep: null };
  // Nobody's commands run in it.
  const told = (text: string): void => (text === ROOT_OWNED ? undefined : warn(text));
  return openBoxFor({ ...opening, warn: told }, signal);
}
