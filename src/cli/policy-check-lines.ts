import { type Mode, MODES } from "../core/decision.ts";
import { linesIn } from "../core/line-diff.ts";
import type { CommandContext, CommandDecision, CommandPolicy } from "../policy/decide.ts";

/** Judges one JSON object a line, in order; a line that is none gets an answer too. */
export async function* judgedLines(
  input: AsyncIterable<Uint8Array>,
  policy: CommandPolicy,
  context: CommandContext,
): AsyncGenerator<CommandDecision> {
  let number = 0;
  for await (const line of linesIn(input)) {
    number += 1;
    const asked = readLine(line);
    yield typeof asked === "string"
      ? misread(`line ${number}: ${asked}`)
      : policy.decide(asked.cmd, { ...context, ...(asked.mode === undefined ? {} : { mode: asked.mode }) });
  }
}

interface Asked {
  readonly cmd: string;
  readonly mode?: Mode;
}

/** What is asked, or why that cannot be read. */
function readLine(line: string): Asked | string {
  let given: unknown;
  try {
    given = JSON.parse(line);
  } catch {
    return 'this is no JSON; expected {"cmd": "ls -l"}';
  }
  if (typeof given !== "object" || given === null || !("cmd" in given) || typeof given.cmd !== "string")
    return 'expected an object with a text "cmd", as in {"cmd": "ls -l", "mode": "read-only"}';
  const mode = "mode" in given ? given.mode : undefined;
  if (mode === undefined) return { cmd: given.cmd };
  const known = MODES.find((each) => each === mode);
  return known === undefined ? `mode is one of ${MODES.join(", ")}` : { cmd: given.cmd, mode: known };
}

const misread = (reason: string): CommandDecision => ({
  decision: "deny",
  contained: false,
  rules: [{ id: "input.line", reason, span: [0, 0] }],
  effects: [],
});
