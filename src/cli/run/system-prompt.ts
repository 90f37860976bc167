import { INSTRUCTIONS, renderInstructions } from "../../agent/context/instructions.ts";
import { systemPrompt } from "../../agent/context/prompt.ts";
import type { Settings } from "../../config/schema.ts";
import { ownInstructions, topInstructions } from "./instructions.ts";

export interface SessionPrompt {
  readonly text: string;
  /** Instructions of the project that are part of it. */
  readonly shown: ReadonlySet<string>;
  /** Bytes that it leaves to those further down. */
  readonly room: number;
}

/** The prompt of a new session: what never changes, and the instructions that are there at its start. */
export async function sessionPrompt(
  { mode, allow_domains }: Pick<Settings, "mode" | "allow_domains">,
  workspace: string,
): Promise<SessionPrompt> {
  const [own, project] = await Promise.all([ownInstructions(), topInstructions(workspace)]);
  const yours = renderInstructions(own, { trusted: true });
  const theirs = renderInstructions(project, { trusted: false, room: roomBeside(yours) });
  const instructions = [yours, theirs].filter((text) => text !== "").join("\n\n");
  return {
    text: systemPrompt({ workspace, mode, domains: allow_domains, instructions }),
    shown: new Set(project.map(({ path }) => path)),
    room: roomBeside(instructions),
  };
}

const roomBeside = (rendered: string): number => Math.max(0, INSTRUCTIONS - Buffer.byteLength(rendered));
