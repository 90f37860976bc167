import { constants, open } from "node:fs/promises";
import path from "node:path";
import type { InstructionFile } from "../../agent/context/instructions.ts";
import { placesFrom } from "../../config/places.ts";

/** By their role they are equal; both may be there. */
const NAMES = ["AGENTS.md", "CLAUDE.md"];
const MOST_BYTES = 64 * 1024;

/**
 * The instructions at the top of the workspace, which are part of the first prompt. Those further down are read in the
 * box. Nothing but a plain file counts: a link could lead anywhere, and nobody may write to a pipe.
 */
export const topInstructions = (workspace: string): Promise<readonly InstructionFile[]> =>
  filesIn(workspace, "");

/** The user's own, for every workspace. */
export const ownInstructions = (): Promise<readonly InstructionFile[]> => {
  const [file] = placesFrom(process.env).configFiles;
  return filesIn(path.dirname(file), "(the user's own) ");
};

async function filesIn(folder: string, mark: string): Promise<readonly InstructionFile[]> {
  const texts = await Promise.all(NAMES.map((name) => plainText(path.join(folder, name))));
  return NAMES.flatMap((name, at) => {
    const text = texts[at];
    if (text === undefined || text.trim() === "") return [];
    return [{ path: `${mark}${name}`, text, cut: text.length >= MOST_BYTES }];
  });
}

async function plainText(file: string): Promise<string | undefined> {
  try {
    await using handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
    if (!(await handle.stat()).isFile()) return undefined;
    const { buffer, bytesRead } = await handle.read({ buffer: Buffer.alloc(MOST_BYTES) });
    return new TextDecoder().decode(buffer.subarray(0, bytesRead));
  } catch {
    // What cannot be read instructs nobody; the model may still come across it in the box.
    return undefined;
  }
}
