import { z } from "zod";
import { MODES, VERDICTS } from "../../core/decision.ts";

/** `not-allow`: ask and deny are both right. */
const WANTED = [...VERDICTS, "not-allow"] as const;

/** One line of a file of judged commands. Other keys are notes. */
const judgedForm = z.object(
  {
    cmd: z.string("expected a command as text"),
    mode: z.enum(MODES, `expected one of ${MODES.join(", ")}`).optional(),
    want: z.enum(WANTED, `expected one of ${WANTED.join(", ")}`),
    class: z.string("expected a text").default("other"),
    why: z.string("expected a text").default(""),
    /** Another verdict can be defended: counted apart. */
    debatable: z.boolean("expected true or false").default(false),
  },
  "expected a JSON object",
);

export type JudgedCommand = z.infer<typeof judgedForm>;

/** What a line says, or why it cannot be read. */
export function readJudged(line: string): JudgedCommand | string {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return "this is no JSON";
  }
  const parsed = judgedForm.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  return [issue?.path.map(String).join("."), issue?.message].filter(Boolean).join(": ");
}
