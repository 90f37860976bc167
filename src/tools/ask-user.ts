import * as z from "zod";
import { type AnyTool, anyTool, NO_FACTS } from "../core/tool.ts";
import { type AskPerson, lenientInput } from "./tool-context.ts";

const MAX_QUESTION = 2000;
const MAX_CHOICE = 200;
const MAX_CHOICES = 4;

const input = lenientInput(
  z.strictObject({
    question: z.string().min(1).max(MAX_QUESTION),
    choices: z.array(z.string().min(1).max(MAX_CHOICE)).max(MAX_CHOICES).optional(),
  }),
);

/** Asks the person at the terminal. Their words are an answer to the model, and approve nothing. */
export function askUserTool(person: AskPerson): AnyTool {
  return anyTool<z.infer<typeof input>>({
    name: "ask_user",
    description:
      "Ask the user one question, with up to 4 choices. Only for what you cannot find out and must not guess.",
    input,
    where: "session",
    concurrent: false,
    facts: () => NO_FACTS,
    run: async ({ question, choices = [] }, signal) => {
      const answer = await person({ question, choices }, signal);
      return answer === undefined
        ? {
            kind: "failed",
            cause: "user",
            text: "The user gave no answer. Choose the most sensible way and say which.",
          }
        : { kind: "ok", text: answer };
    },
  });
}
