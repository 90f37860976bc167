import { EXIT, HarnessError } from "../../core/errors.ts";

/** What was stored as JSON. SQLite keeps no sums of its pages: that a text is damaged may show only here. */
export function storedJson(text: string | null, session: string): unknown {
  try {
    return JSON.parse(text ?? "");
  } catch (thrown) {
    throw new HarnessError(
      EXIT.failed,
      `the session ${session} is damaged: a text in it cannot be read`,
      `harness sessions rm ${session}   (the others are whole)`,
      thrown,
    );
  }
}
