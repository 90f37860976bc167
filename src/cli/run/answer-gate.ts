import { type AnswerGate, FittedAnswer, PlainAnswer } from "../../agent/answer.ts";

/** What becomes of the final answer, and the task as the model gets it. */
export async function answerFor(
  schemaFile: string | undefined,
  prompt: string,
): Promise<{ readonly gate: AnswerGate; readonly task: string }> {
  if (schemaFile === undefined) return { gate: new PlainAnswer(), task: prompt };
  const { readOutputSchema } = await import("./output-schema.ts");
  const { schema, check } = await readOutputSchema(schemaFile);
  const task = `${prompt}\n\n[harness] When you are done, your final answer must be JSON alone, without prose or fences, that fits this JSON Schema:\n${JSON.stringify(schema)}`;
  return { gate: new FittedAnswer(schema, check), task };
}
