import type { Config } from "../../config/load.ts";
import type { Places } from "../../config/places.ts";
import type { StepLine } from "../../render/tty/progress.ts";

/** What every step of the set-up is given. */
export interface SetupContext {
  /** The installed package. */
  readonly root: string;
  /** The folder that a run would work on; nothing in it is ever started on the host. */
  readonly workspace: string;
  readonly places: Places;
  readonly config: Config;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
  readonly mayInstall: boolean;
  /** Answers offers with yes, where nobody is there to be asked. */
  readonly yes: boolean;
  /** Progress within a step; shown only where somebody watches. */
  readonly onLine: (line: string) => void;
  readonly confirm: (question: string) => Promise<boolean>;
}

export type StepResult = Omit<StepLine, "name">;

export const done = (detail: string): StepResult => ({ state: "ok", detail, remedy: "", short: detail });

/** `short` says in the closing table what stands in for what. */
export const standIn = (short: string, detail: string, remedy = ""): StepResult => ({
  state: "stand-in",
  detail,
  remedy,
  short,
});
