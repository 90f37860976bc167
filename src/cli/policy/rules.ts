import path from "node:path";
import { placesFrom } from "../../config/places.ts";
import { loadRules } from "../../config/policy-file.ts";
import type { CommandContext } from "../../policy/decide.ts";
import { configFor, workspaceOf } from "../settings.ts";

/** What the flags, the settings and the user's rules say of judging. No project can be trusted yet, so none of its rules count. */
export async function judgingFor(
  flags: Readonly<Record<string, unknown>>,
): Promise<CommandContext & { readonly rules: NonNullable<CommandContext["rules"]> }> {
  const { settings } = await configFor(flags);
  const workspace = path.resolve(workspaceOf(flags));
  const rules = await loadRules({ env: process.env, workspace, trusted: false });
  return { mode: settings.mode, workspace, home: placesFrom(process.env).home, rules };
}
