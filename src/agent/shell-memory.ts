import type { SessionRecord } from "../core/session.ts";
import type { ShellState } from "../tools/desk.ts";

/** Where the shell stands and what it exports, from call to call and from run to run. */
export class ShellMemory implements ShellState {
  folder: string;
  env: Readonly<Record<string, string>> = {};
  readonly #record: (record: SessionRecord) => void;

  constructor(workspace: string, records: readonly SessionRecord[], record: (record: SessionRecord) => void) {
    this.#record = record;
    const last = records.findLast((each) => each.kind === "shell");
    this.folder = last?.folder ?? workspace;
    this.env = last?.env ?? {};
  }

  move(folder: string, env: Readonly<Record<string, string>>): void {
    if (folder === this.folder && JSON.stringify(env) === JSON.stringify(this.env)) return;
    this.#record({ kind: "shell", folder, env });
    this.folder = folder;
    this.env = env;
  }
}
