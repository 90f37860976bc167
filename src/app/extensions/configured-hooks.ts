import { existsSync } from "node:fs";
import path from "node:path";
import { EXIT, HarnessError, reasonOf } from "../../core/errors.ts";
import { type Extensions, NO_EXTENSIONS, NO_FACTS } from "../../core/tool.ts";
import type { HookGiven } from "../../core/added-programs.ts";
import { isInside } from "../../core/file-names.ts";
import { projectOf } from "../../extensions/brought.ts";
import { type HookVerdict, type HostPlace, runInBox, runOnHost } from "../../extensions/hook-programs.ts";
import { type Hook, hooksOf } from "../../extensions/hook-chain.ts";
import { keptValues, projectHooks } from "../../extensions/program-files.ts";
import type { TrustedFile } from "../../extensions/trust.ts";
import { shellText } from "../../policy/shell/shell-syntax.ts";
import { lazyJudge } from "../project/policy-context.ts";
import type { ExtensionParts } from "./open-extensions.ts";

type HookParts = Pick<ExtensionParts, "host" | "settings" | "workspace" | "session" | "box">;

/** The hooks of a run: the user's on the host; those of a trusted project in the box, and only if the policy allows. */
export async function openHooks(parts: HookParts, project: TrustedFile): Promise<Extensions> {
  const { settings, workspace, session } = parts;
  const place = await hostPlace(parts);
  const own = settings.hooks.map((given) => userHook(given, parts, place));
  const theirs = project.state === "trusted" ? theirHooks(parts, project) : [];
  const hooks = hooksOf([...own, ...theirs], { session, workspace, mode: settings.mode });
  return { ...NO_EXTENSIONS, hooks };
}

/**
 * The user's hooks start in the folder of their settings, so that no relative name can find a file of the workspace; if
 * the settings are inside the workspace, they start at the root.
 */
async function hostPlace({ host, workspace }: HookParts): Promise<HostPlace> {
  const { env, places } = host;
  const apart = (await projectOf(workspace, places.home))?.top ?? workspace;
  const folder = path.dirname(places.configFiles[0]);
  const inside = isInside(apart, folder);
  return { env, home: places.home, apart, cwd: existsSync(folder) && !inside ? folder : "/" };
}

function userHook(given: HookGiven, { host, workspace }: HookParts, place: HostPlace): Hook {
  const values = keptValues({ stateDir: host.places.state, workspace, owner: "user" });
  return { owner: "user", given, values, run: (run, signal) => runOnHost(given.command, place, run, signal) };
}

function theirHooks(
  { host, settings, workspace, box }: HookParts,
  { file, text, top }: Extract<TrustedFile, { readonly state: "trusted" }>,
): readonly Hook[] {
  const values = keptValues({ stateDir: host.places.state, workspace, owner: "project" });
  const judge = lazyJudge(host, settings, workspace);
  // If the workspace is a copy, the box has nothing above it.
  const folder = settings.isolation === "copy" ? workspace : top;
  return readHooks(file, text).map((given) => ({
    owner: "project",
    given,
    values,
    run: async (run, signal) => {
      const { command } = given;
      const words = typeof command === "string" ? command : shellText(command);
      const { decision, rules } = (await judge()).judge({ ...NO_FACTS, commands: [words], folder }, "hook");
      const verdict: HookVerdict = { decision, rules };
      // A person has seen the command and trusts it: that answers an ask, but not a deny.
      const [rule] = rules;
      if (decision === "deny")
        return {
          kind: "broken",
          why: `the policy denies its command: ${rule?.reason ?? ""} (rule ${rule?.id ?? "none"})`,
          verdict,
        };
      return { ...(await runInBox(command, { box, folder }, run, signal)), verdict };
    },
  }));
}

/** A trusted file must be readable: otherwise the run would go on without its guards. */
function readHooks(file: string, text: string): readonly HookGiven[] {
  try {
    return projectHooks(file, text);
  } catch (thrown) {
    throw new HarnessError(EXIT.usage, reasonOf(thrown), "fix it, then: harness trust");
  }
}
