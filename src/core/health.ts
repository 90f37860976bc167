/** The state of one thing `run` depends on, as `doctor` and the set-up report it. */
export interface Health {
  /** Stable key for scripts, e.g. `engine` or `model.context`. */
  readonly id: string;
  readonly state: "ok" | "warn" | "fail";
  readonly detail: string;
  /** The command that repairs it; empty when nothing needs repair. */
  readonly remedy: string;
}

export const healthy = (id: string, detail: string): Health => ({ id, state: "ok", detail, remedy: "" });
export const ailing = (id: string, detail: string, remedy = ""): Health => ({
  id,
  state: "warn",
  detail,
  remedy,
});
export const broken = (id: string, detail: string, remedy: string): Health => ({
  id,
  state: "fail",
  detail,
  remedy,
});
