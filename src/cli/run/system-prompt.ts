import { systemPrompt } from "../../agent/context/prompt.ts";
import type { Settings } from "../../config/schema.ts";
import { ownInstructions, topInstructions } from "./instructions.ts";

/** The prompt of a new session: what never changes, and the instructions that are there at its start. */
export async function systemPromptFor({ mode }: Settings, workspace: string): Promise<string> {
  const [own, project] = await Promise.all([ownInstructions(), topInstructions(workspace)]);
  return systemPrompt({ mode, workspace, own, project, trusted: false });
}
