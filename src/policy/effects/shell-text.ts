import { type Arg, UNKNOWN } from "../models/model.ts";
import type { Span } from "../shell/syntax.ts";
import type { CallAt } from "./call.ts";
import { relocated } from "./called.ts";
import { withoutVariables } from "./scope.ts";

/** What a text does when a shell runs it. */
export function shellEffects(text: Arg, { walk, scope, input }: CallAt): void {
  if (text.kind !== "literal") {
    walk.doubt("word.dynamic", text.value, text.span);
    const from = text.feed === "network" ? "fetched" : "input";
    walk.add({ kind: "code", from, path: null }, "shell", text.span);
  }
  if (text.value.replaceAll(UNKNOWN, "").trim() === "") return;
  // What is not known is read as some word, so that dangers around it are still seen.
  const { tree, doubts } = walk.world.readShell(text.value.replaceAll(UNKNOWN, "_"));
  const before = walk.effects.length;
  const callsBefore = walk.calls.length;
  for (const { doubt, what, span } of doubts) walk.doubt(doubt, what, span);
  walk.apart(tree, withoutVariables(scope), input);
  const inner = walk.effects.splice(before);
  const place = placer(text);
  for (const effect of inner) walk.effects.push({ ...effect, span: place(effect.span) });
  for (let call = callsBefore; call < walk.calls.length; call += 1) {
    const called = walk.calls[call];
    if (called !== undefined) walk.calls[call] = relocated(called, place);
  }
}

/** Offsets in the inner text as offsets in the outer one, exact where that text stands there as it is. */
function placer({ value, span: [start, end] }: Arg): (span: Span) => Span {
  const around = end - start - value.length;
  if (around !== 0 && around !== 2) return () => [start, end];
  const shift = start + around / 2;
  // What the inner text was fed with stands outside of it, and is shown at its edge.
  const inside = (at: number): number => Math.min(Math.max(at + shift, start), end);
  return ([from, to]) => [inside(from), inside(to)];
}
