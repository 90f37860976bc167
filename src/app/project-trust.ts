import type { Kind } from "../extensions/brought.ts";
import { type TrustedFile, trustedFile as fileOf } from "../extensions/trust.ts";
import type { ProjectText } from "../config/load-config.ts";
import type { Host } from "./host.ts";

/** A file that the workspace's project brings, for whoever wants to act on it: only a trusted one counts. */
export const trustedFile = (host: Host, workspace: string, kind: Kind): Promise<TrustedFile> =>
  fileOf(ownerOf(host), workspace, kind);

const ownerOf = ({ places, uid }: Host) => ({ stateDir: places.state, home: places.home, uid });

/** The same where what only tightens counts without trust; undefined where nothing can be read. */
export async function projectText(
  host: Host,
  workspace: string,
  kind: "settings" | "rules",
): Promise<ProjectText | undefined> {
  const found = await trustedFile(host, workspace, kind);
  if (found.state === "absent" || found.text === null) return undefined;
  return { file: found.file, text: found.text, trusted: found.state === "trusted" };
}
