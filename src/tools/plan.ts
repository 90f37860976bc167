import * as z from "zod";
import { MAX_PLAN, type Plan, PLAN_MARKS, planCounts, type PlanStep } from "../core/run-record.ts";
import { type AnyTool, anyTool, NO_FACTS } from "../core/tool.ts";
import { visibleWhole } from "../core/visible.ts";
import { lenientInput } from "./tool-context.ts";

type Status = PlanStep["status"];

/** Words that models write in place of a mark. */
const WORDS: Readonly<Record<string, Status>> = {
  pending: "pending",
  todo: "pending",
  open: "pending",
  not_started: "pending",
  doing: "doing",
  in_progress: "doing",
  active: "doing",
  current: "doing",
  done: "done",
  completed: "done",
  complete: "done",
  finished: "done",
  dropped: "dropped",
  cancelled: "dropped",
  canceled: "dropped",
  skipped: "dropped",
};

const SIGNS: Readonly<Record<string, Status>> = {
  "": "pending",
  ...Object.fromEntries(Object.entries(PLAN_MARKS).map(([status, mark]) => [mark, status as Status])),
  X: "done",
  "✓": "done",
  "✔": "done",
  "~": "doing",
  "*": "doing",
};

const MARKED = /^\s*(?:(?:[-*•]|\d{1,2}[.)])\s+)?\[([^\]\n]{0,12})\]\s*(.*)$/s;

function stepOf(line: string): PlanStep {
  const [, mark, rest = ""] = MARKED.exec(line) ?? [];
  const status = mark === undefined ? undefined : statusOf(mark);
  const text = status === undefined ? line : rest;
  return { text: visibleWhole(text.replace(/\s+/g, " ").trim().toWellFormed()), status: status ?? "pending" };
}

const statusOf = (mark: string): Status | undefined =>
  SIGNS[mark.trim() === "" ? " " : mark.trim()] ?? WORDS[mark.trim().toLowerCase().replace(/[\s-]/g, "_")];

/** Also accepts a text with one line for each step, and steps as objects, as similar tools do. */
function linesOf(value: unknown): unknown {
  if (typeof value === "string") return linesOf(parsed(value));
  return Array.isArray(value) ? value.map(lineOf).filter((line) => line !== "") : value;
}

function parsed(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value : text.split("\n");
  } catch {
    return text.split("\n");
  }
}

function lineOf(value: unknown): unknown {
  if (typeof value === "string") return value.trim();
  if (typeof value !== "object" || value === null) return value;
  const { status, state = status, text, step = text, title = step, content = title } = fieldsOf(value);
  return typeof content === "string" ? `[${typeof state === "string" ? state : " "}] ${content}` : value;
}

const fieldsOf = (value: object): Readonly<Record<string, unknown>> => ({ ...value });

const input = lenientInput(
  z.strictObject({
    steps: z.preprocess(
      linesOf,
      z.array(z.string()).refine(({ length }) => length <= MAX_PLAN.steps, {
        error: `at most ${MAX_PLAN.steps} steps: put small ones together`,
      }),
    ),
  }),
);
type Input = z.infer<typeof input>;

/** The model's plan, for the person, and for the model itself after its conversation was compacted. */
export function planTool(take: (plan: Plan) => void): AnyTool {
  return anyTool<Input>({
    name: "plan",
    description: "Show the user all steps of your plan, each after [ ], [>] doing, [x] done or [-] dropped.",
    input,
    where: "session",
    concurrent: false,
    facts: () => NO_FACTS,
    run: ({ steps }) => {
      const whole = steps.map(stepOf).filter(({ text }) => text !== "");
      const plan = whole.map(({ text, status }) => ({ text: cut(text), status }));
      take(plan);
      const short = whole.filter(({ text }) => text !== cut(text)).length;
      const note = short === 0 ? "" : `; ${short} cut at ${MAX_PLAN.length} characters`;
      return Promise.resolve({ kind: "ok", text: `The plan is noted: ${planCounts(plan)}${note}.` });
    },
  });
}

const cut = (text: string): string =>
  text.length <= MAX_PLAN.length ? text : `${text.slice(0, MAX_PLAN.length - 1).toWellFormed()}…`;
