import { bytesOfText, textOfBytes } from "../../core/byte-text.ts";
import { applyHunks } from "./apply.ts";
import { type FilePatch, PatchMistake } from "./patch.ts";

/** A file before or after the patch; undefined where there is none. */
export interface FileState {
  readonly content: Uint8Array;
  readonly mode: number;
}

/** One path that the patch changes. */
export interface Step {
  readonly path: string;
  readonly before: FileState | undefined;
  readonly after: FileState | undefined;
}

export interface Sources {
  /** Absolute. */
  readonly pathOf: (path: string) => string;
  readonly nameOf: (path: string) => string;
  /** A file as it is now, by its absolute path; only those that the patch takes from are asked for as known. */
  readonly load: (path: string) => Promise<FileState | undefined>;
}

const NEW = 0o644;

/** All files of the patch as they will be; the first mistake is thrown, with nothing written. */
export async function planned(files: readonly FilePatch[], sources: Sources): Promise<readonly Step[]> {
  const steps = new Map<string, Step>();
  const now = async (path: string): Promise<FileState | undefined> => {
    const step = steps.get(path);
    return step === undefined ? sources.load(path) : step.after;
  };
  const set = async (path: string, after: FileState | undefined): Promise<void> => {
    const before = steps.has(path) ? steps.get(path)?.before : await sources.load(path);
    steps.set(path, { path, before, after });
  };
  for (const file of files) {
    const path = sources.pathOf(file.path);
    const to = sources.pathOf(file.to ?? file.path);
    const name = sources.nameOf(path);
    const state = await now(path);
    if (file.what === "add") {
      if (state !== undefined) throw new PatchMistake(`${name}: it is already there; send an update of it`);
      await set(path, { content: bytesOfText(applyHunks(name, "", file.hunks)), mode: file.mode ?? NEW });
      continue;
    }
    if (state === undefined) throw new PatchMistake(`${name}: no such file; *** Add File makes a new one`);
    if (file.what === "delete") {
      await set(path, undefined);
      continue;
    }
    if (to !== path && (await now(to)) !== undefined)
      throw new PatchMistake(`${sources.nameOf(to)}: it is already there; ${name} cannot be moved over it`);
    const after = { content: patched(name, state, file), mode: file.mode ?? state.mode };
    if (to !== path) await set(path, undefined);
    await set(to, after);
  }
  return [...steps.values()];
}

function patched(name: string, { content }: FileState, { hunks }: FilePatch): Uint8Array {
  if (hunks.length === 0) return content;
  if (content.includes(0)) throw new PatchMistake(`${name}: a binary file; it cannot be patched as text`);
  return bytesOfText(applyHunks(name, textOfBytes(content), hunks));
}
