import path from "node:path";
import { renderSkills } from "../../agent/prompt.ts";
import type { Extensions } from "../../core/tool.ts";
import { bytesOf, rowOf } from "../../extensions/brought.ts";
import {
  firstOfEachName,
  type Found,
  ownSkills,
  projectSkills,
  type Skill,
} from "../../extensions/skill-folders.ts";
import { skillTool } from "../../extensions/skill-tool.ts";
import type { Host } from "../host.ts";
import { trustedFile } from "../project/project-trust.ts";
import type { ExtensionParts } from "./open-extensions.ts";

/** The user's own folders, in order of precedence. */
export const ownFolders = ({ places }: Host, kind: "skills" | "commands"): readonly string[] => [
  path.join(path.dirname(places.configFiles[0]), kind),
  path.join(places.home, ".agents", kind),
  path.join(places.home, ".claude", kind),
];

/** A thing of a project that exists but does not count. */
export interface NotTrusted {
  readonly kind: "skills" | "commands";
  /** Absolute. */
  readonly file: string;
  readonly why: string;
}

export interface Skills extends Found<Skill> {
  readonly untrusted: NotTrusted | undefined;
}

/** The user's current skills, then those of the workspace's project that are trusted. */
export async function skillsOf(host: Host, workspace: string): Promise<Skills> {
  const [own, brought] = await Promise.all([
    Promise.all(ownFolders(host, "skills").map((folder) => ownSkills(folder, workspace))),
    trustedFile(host, workspace, "skills"),
  ]);
  const theirs =
    brought.state === "trusted"
      ? [projectSkills(brought.files, rowOf("skills").files, (file) => bytesOf(brought.top, file))]
      : [];
  const found = firstOfEachName(
    [...own, ...theirs],
    (one, other) => one.body === other.body && one.description === other.description,
  );
  const untrusted =
    brought.state === "untrusted"
      ? ({ kind: "skills", file: brought.file, why: brought.why } as const)
      : undefined;
  return { ...found, untrusted };
}

/** Undefined if there is no skill for the model. Untrusted things of the project are reported and otherwise ignored. */
export async function openSkills(parts: ExtensionParts): Promise<Extensions | undefined> {
  const { host, workspace, warn } = parts;
  const { all, problems, untrusted } = await skillsOf(host, workspace);
  if (untrusted !== undefined) tellUntrusted(parts, untrusted);
  if (problems.length > 0)
    warn(
      `${problems.length === 1 ? "a skill is" : `${problems.length} skills are`} ignored: ${problems[0]?.file} (${problems[0]?.why})${problems.length > 1 ? " …" : ""}; harness skills lists them`,
    );
  const offered = all.filter((skill) => skill.offered);
  if (offered.length === 0) return undefined;
  const { text, left } = renderSkills(offered);
  if (left.length > 0)
    warn(
      `${left.length} of ${offered.length} skills are not offered to the model, for lack of room: ${left.slice(0, 5).join(", ")}`,
    );
  const tools = [skillTool(offered, parts.box)];
  return { tools: () => tools, prompt: text, [Symbol.asyncDispose]: () => Promise.resolve() };
}

function tellUntrusted({ emit, workspace }: ExtensionParts, { kind, file, why }: NotTrusted): void {
  const name = path.relative(workspace, file);
  const shown = name.startsWith("..") ? file : name;
  emit({
    type: "notice",
    text: `skills of the project are left out: ${shown} (${why}); harness trust shows what they say`,
    untrusted: [{ kind, file: shown, why }],
  });
}
