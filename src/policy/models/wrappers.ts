import type { Model } from "./model.ts";

/** Programs that run another one, given by their arguments. */
export const WRAPPERS: Readonly<Record<string, Model>> = {
  timeout: {
    options: "-fpv -k: -s: --foreground --preserve-status --verbose --kill-after= --signal=",
    operands: "data command*",
    strict: true,
    abbreviates: true,
  },
  nohup: { operands: "command*", strict: true },
  sudo: { fixed: ["privilege"], operands: "command*", strict: true },
};
