import * as z from "zod";

/** A model's plan, as the model writes it and a person sees it. */

export const planStepForm = z.strictObject({
  text: z.string(),
  status: z.enum(["pending", "doing", "done", "dropped"]),
});
export type PlanStep = Readonly<z.infer<typeof planStepForm>>;
export type Plan = readonly PlanStep[];

/** Most steps of a plan, and most characters of a step. */
export const MAX_PLAN = { steps: 20, length: 200 } as const;

export const PLAN_MARKS: Readonly<Record<PlanStep["status"], string>> = {
  pending: " ",
  doing: ">",
  done: "x",
  dropped: "-",
};

/** As the model writes it, one line for each step. */
export const planText = (plan: Plan): string =>
  plan.map(({ text, status }) => `[${PLAN_MARKS[status]}] ${text}`).join("\n");

/** For the model, beside the summary of earlier messages. */
export const planKept = (plan: Plan): string =>
  plan.length === 0 ? "" : `[Your plan at that time]\n${planText(plan)}`;

const NAMES = { done: "done", doing: "doing", pending: "to come", dropped: "dropped" } as const;

/** How many steps are in each state. */
export function planCounts(plan: Plan): string {
  const told = (["done", "doing", "pending", "dropped"] as const).flatMap((status) => {
    const count = plan.filter((step) => step.status === status).length;
    return count === 0 ? [] : [`${count} ${NAMES[status]}`];
  });
  return told.join(", ") || "no steps";
}
