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
  /** Where it was, when it is moved here. */
  readonly from?: string;
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
  const plan = new Plan(sources);
  for (const file of files) await take(plan, file, sources);
  return plan.steps();
}

/** The files as the sections of the patch so far leave them. */
class Plan {
  readonly #steps = new Map<string, Step>();
  readonly #load: Sources["load"];

  constructor({ load }: Sources) {
    this.#load = load;
  }

  steps = (): readonly Step[] => [...this.#steps.values()];

  async now(path: string): Promise<FileState | undefined> {
    const step = this.#steps.get(path);
    return step === undefined ? this.#load(path) : step.after;
  }

  async set(path: string, after: FileState | undefined, from?: string): Promise<void> {
    const step = this.#steps.get(path) ?? { path, before: await this.#load(path), after };
    this.#steps.set(path, { ...step, after, ...(from === undefined ? {} : { from }) });
  }
}

async function take(plan: Plan, file: FilePatch, { pathOf, nameOf }: Sources): Promise<void> {
  const [path, to] = [pathOf(file.path), pathOf(file.to ?? file.path)];
  const name = nameOf(path);
  const state = await plan.now(path);
  if (file.what === "add") {
    if (state !== undefined) throw new PatchMistake(`${name}: it is already there; send an update of it`);
    const content = bytesOfText(applyHunks(name, "", file.hunks));
    return plan.set(path, { content, mode: file.mode ?? NEW });
  }
  if (state === undefined) throw new PatchMistake(`${name}: no such file; *** Add File makes a new one`);
  if (file.what === "delete") {
    patched(name, state, file);
    return plan.set(path, undefined);
  }
  const after = { content: patched(name, state, file), mode: file.mode ?? state.mode };
  if (to === path) return plan.set(path, after);
  if ((await plan.now(to)) !== undefined)
    throw new PatchMistake(`${nameOf(to)}: it is already there; ${name} cannot be moved over it`);
  await plan.set(path, undefined);
  return plan.set(to, after, path);
}

function patched(name: string, { content }: FileState, { hunks }: FilePatch): Uint8Array {
  if (hunks.length === 0) return content;
  if (content.includes(0)) throw new PatchMistake(`${name}: a binary file; it cannot be patched as text`);
  return bytesOfText(applyHunks(name, textOfBytes(content), hunks));
}
