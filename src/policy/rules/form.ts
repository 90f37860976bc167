import { z } from "zod";
import { VERDICTS } from "../../core/decision.ts";

const text = (what: string): z.ZodString =>
  z
    .string(`expected ${what}`)
    .min(1, `expected ${what}, found an empty text`)
    .refine((value) => !/[\0-\x1F\x7F]/.test(value), `expected ${what}, found a control character`);

const oneOrMore = (what: string): z.ZodType<string | string[]> =>
  z.union([text(what), z.array(text(what)).min(1)], `expected ${what}, or a list of such`);

const WORDS = 'expected the first words of a command, such as ["npm", "run", ["build", "lint"]]';
/** Of several lines perhaps: a program given as an argument. */
const oneWord = z.string(WORDS).regex(/^[^\0-\x08\x0B-\x1F\x7F]+$/, WORDS);
const word = z.union([oneWord, z.array(oneWord).min(1)], WORDS);
const shown = z.array(z.string("expected a command as text"), "expected a list of commands");

/** One rule as it is written. Keys that are not here are mistakes. */
export const ruleForm = z.strictObject(
  {
    id: z
      .string("expected a name")
      .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, "expected a name of letters, digits, dots and dashes")
      .optional(),
    prefix: z.array(word, WORDS).min(1, WORDS).optional(),
    exact: z.boolean("expected true or false").optional(),
    arg: oneOrMore("an argument, * for any text").optional(),
    effect: oneOrMore("the name of an effect").optional(),
    path: oneOrMore('a path, such as "src/**", "~/notes/**" or "/etc/hosts"').optional(),
    host: oneOrMore('a host, such as "example.com" or "*.example.com"').optional(),
    decision: z.enum(VERDICTS, `expected one of ${VERDICTS.join(", ")}`),
    reason: z
      .string("expected why the rule is there, in words")
      .refine((value) => value.trim() !== "", "expected why the rule is there, in words"),
    match: shown.optional(),
    notMatch: shown.optional(),
  },
  "expected a rule",
);

export type RuleForm = z.infer<typeof ruleForm>;
export const RULE_KEYS: readonly string[] = Object.keys(ruleForm.shape);
