import { type AnswerGate, FittedAnswer, PlainAnswer } from "../../agent/answer.ts";

/** What becomes of the final answer, and what the model is told of it behind the task. */
export async function answerFor(
  schemaFile: string | undefined,
): Promise<{ readonly gate: AnswerGate; readonly note: string }> {
  if (schemaFile === undefined) return { gate: new PlainAnswer(), note: "" };
  const { readOutputSchema } = await import("./output-schema.ts");
  const { schema, check } = await readOutputSchema(schemaFile);
  const note = `\n\n[harness] When you are done, your final answer must be JSON alone, without prose or fences, that fits this JSON Schema:\n${JSON.stringify(schema)}`;
  return { gate: new FittedAnswer(schema, check), note };
}
