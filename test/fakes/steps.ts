import type { Step, StepStore } from "../../src/core/session.ts";

export function memorySteps(): StepStore {
  const steps: Step[] = [];
  let ends = 0;
  return {
    begin: (given) => {
      const step = steps.length + 1;
      steps.push({ ...given, step, at: Date.now(), after: null, ended: null });
      return step;
    },
    end: (step, trees) => {
      const [known] = steps.splice(step - 1, 1);
      if (known !== undefined) steps.splice(step - 1, 0, { ...known, ...trees, ended: (ends += 1) });
    },
    all: () => structuredClone(steps),
  };
}
