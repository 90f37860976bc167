/** `name=value`, in front of a command and alone: which programs obey the variable, and what is known of its value. */
import { type Arg, UNKNOWN } from "../programs/program-model.ts";
import type { Assignment, Span } from "../shell/shell-syntax.ts";
import { addTextDangers, type Walk } from "./call-effects.ts";
import { isInert, isPrivate, isTame, variableDoubt } from "./environment.ts";
import { itemsOf, joinedValues, type Scope, withVariable } from "./scope.ts";

interface At {
  readonly walk: Walk;
  readonly scope: Scope;
  readonly input: Parameters<typeof addTextDangers>[1]["input"];
  readonly span: Span;
}

/** `name=value` in front of a command. Before `read`, `IFS` only says where the line is split. */
export function prefixEffects(assignment: Assignment, command: Arg, at: At): void {
  const { walk, scope } = at;
  const { value } = valueOf(assignment, scope, walk);
  const { name, span, append } = assignment;
  const known = value?.kind === "literal" ? value.value : null;
  const cuts =
    name === "IFS" && known !== null && !append && command.kind === "literal" && command.value === "read";
  if (cuts || isInert(name, known)) return;
  walk.doubt(variableDoubt(name), name, span, isTame(name, known, tameContext(scope, walk)));
  commandInValue(name, value, at);
}

/** `GIT_SSH_COMMAND`, `PAGER`, `PROMPT_COMMAND`: the value is a command; that of `LESSOPEN` starts with a pipe. */
function commandInValue(name: string, value: Arg | null, at: At): void {
  if (value?.kind !== "literal" || !/\s/.test(value.value) || at.walk.crowded) return;
  if (variableDoubt(name) !== "env.unknown") return;
  addTextDangers({ ...value, value: value.value.replace(/^\|{1,2}-?/, "") }, at);
}

/** `name=value` without a command. */
export function scopeAfterAssignment(assignment: Assignment, scope: Scope, walk: Walk): Scope {
  const { value, items } = valueOf(assignment, scope, walk);
  const { name, span, append } = assignment;
  const known = value?.kind === "literal" ? value.value : null;
  if (!isPrivate(name) && !isInert(name, known))
    walk.doubt(
      variableDoubt(name),
      name,
      span,
      name !== "IFS" && isTame(name, known, tameContext(scope, walk)),
    );
  commandInValue(name, value, { walk, scope, input: "unknown", span });
  if (value?.feed === "network")
    return withVariable(scope, name, { ...value, kind: "dynamic", value: UNKNOWN });
  if (assignment.value === null)
    return withVariable(withVariable(scope, name, null), itemsOf(name), itemsAfter(assignment, items, scope));
  return withVariable(scope, name, append || !isUsableValue(value, walk) ? null : value);
}

/** The items of the array after the assignment. */
function itemsAfter({ name, append }: Assignment, values: readonly Arg[], scope: Scope): Arg | null {
  const items = joinedValues(values);
  const before = append ? scope.variables.get(itemsOf(name)) : undefined;
  return items === null || before === undefined
    ? items
    : { ...items, value: `${before.value} ${items.value}` };
}

/** Whether the value is known well enough to be used where the variable is. */
const isUsableValue = (value: Arg | null, { world }: Walk): boolean =>
  value?.kind === "literal" || value?.user === true || (value?.kind === "glob" && world.assumptions !== null);

const tameContext = ({ folders }: Scope, { world }: Walk): Parameters<typeof isTame>[2] => ({
  folders,
  workspace: world.workspace,
});

interface Value {
  readonly value: Arg | null;
  /** The words of an array. */
  readonly items: readonly Arg[];
}

function valueOf({ value, others }: Assignment, scope: Scope, walk: Walk): Value {
  const items = walk.args(others, scope);
  const args = value === null ? [] : walk.args([value], scope);
  return { value: args.length === 1 ? (args[0] ?? null) : null, items };
}
