import type { Arg } from "../models/model.ts";
import type { Assignment } from "../shell/syntax.ts";
import { isInert, isPrivate, variableDoubt } from "./environment.ts";
import { isTame } from "./environment-values.ts";
import { type Scope, withVariable } from "./scope.ts";
import type { Walk } from "./walk.ts";

/** `name=value` before a command. */
export function prefix(assignment: Assignment, scope: Scope, walk: Walk): void {
  const value = valueOf(assignment, scope, walk);
  const { name, span } = assignment;
  const known = value?.kind === "literal" ? value.value : null;
  if (!isInert(name, known))
    walk.doubt(variableDoubt(name), name, span, isTame(name, known, around(scope, walk)));
}

/** `name=value` alone. */
export function assign(assignment: Assignment, scope: Scope, walk: Walk): Scope {
  const value = valueOf(assignment, scope, walk);
  const { name, span, append } = assignment;
  const known = value?.kind === "literal" ? value.value : null;
  if (!isPrivate(name) && !isInert(name, known))
    walk.doubt(variableDoubt(name), name, span, name !== "IFS" && isTame(name, known, around(scope, walk)));
  const lasts = value?.kind === "literal" || (value?.kind === "glob" && walk.world.assumptions !== null);
  return withVariable(scope, name, append || !lasts ? null : value);
}

const around = ({ folders }: Scope, { world }: Walk): Parameters<typeof isTame>[2] => ({
  folders,
  workspace: world.workspace,
});

function valueOf({ value, others }: Assignment, scope: Scope, walk: Walk): Arg | null {
  walk.args(others, scope);
  if (value === null) return null;
  const args = walk.args([value], scope);
  return args.length === 1 ? (args[0] ?? null) : null;
}
