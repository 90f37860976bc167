import type { Step, Steps } from "../core/checkpoints.ts";
import type { Clock } from "./clock.ts";
import type { Database } from "./db/database.ts";

export class StoredSteps implements Steps {
  readonly #session: string;
  readonly #db: Database;
  readonly #clock: Clock;

  constructor(session: string, db: Database, clock: Clock) {
    this.#session = session;
    this.#db = db;
    this.#clock = clock;
  }

  begin({ kind, call, turn, before, target }: Omit<Step, "step" | "at" | "after">): number {
    return this.#db.atomically(() => {
      const sql = "SELECT coalesce(max(step), 0) + 1 AS next FROM checkpoints WHERE session = ?";
      const step = (this.#db.get(sql, this.#session) as { next: number } | undefined)?.next ?? 1;
      const row = { session: this.#session, step, kind, call, turn, at: this.#clock.now() };
      this.#db.insert("checkpoints", { ...row, before_tree: before, target });
      return step;
    });
  }

  end(step: number, { before, after }: { readonly before: string; readonly after: string }): void {
    this.#db.run(
      "UPDATE checkpoints SET before_tree = ?, after_tree = ?, ended = ? WHERE session = ? AND step = ?",
      before,
      after,
      this.#clock.now(),
      this.#session,
      step,
    );
  }

  all(): readonly Step[] {
    return this.#db.all(
      `SELECT step, kind, call, turn, at, before_tree AS before, after_tree AS after, target
       FROM checkpoints WHERE session = ? ORDER BY step`,
      this.#session,
    ) as readonly Step[];
  }
}
