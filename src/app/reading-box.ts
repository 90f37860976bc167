import type { Settings } from "../config/settings-schema.ts";
import type { OwnedBox } from "../core/ports.ts";

interface Reading {
  readonly settings: Settings;
  readonly workspace: string;
  /** A box of this process holds the workspace already. */
  readonly beside?: boolean;
  readonly warn: (text: string) => void;
}

/** A box that can only read the workspace, whatever the mode of runs is; nothing but our own programs runs in it. */
export async function readingBox(
  { settings, workspace, warn, beside = false }: Reading,
  signal: AbortSignal,
): Promise<OwnedBox> {
  const [{ openBoxFor }, { ROOT_OWNED }] = await Promise.all([
    import("./open-box.ts"),
    import("../docker/box/box-workspace.ts"),
  ]);
  const isolation = settings.isolation === "copy" ? ("copy" as const) : ("bind" as const);
  const shape = { ...settings, mode: "read-only" as const, isolation, allow_domains: [] as string[] };
  const opening = {
    settings: shape,
    workspace,
    runtime: null,
    watchChanges: false,
    keep: null,
    beside,
    ownOnly: true,
  };
  const told = (text: string): void => (text === ROOT_OWNED ? undefined : warn(text));
  return openBoxFor({ ...opening, warn: told }, signal);
}
