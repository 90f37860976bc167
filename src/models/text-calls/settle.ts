import type { Item } from "./items.ts";
import type { OfferedTools } from "./names.ts";
import {
  CUT,
  type Found,
  isRecord,
  type Reading,
  type WrittenCall,
  type WrittenMalformed,
} from "./reading.ts";
import { typed } from "./schema.ts";
import { commentedAsShown, LOOK_AFTER } from "./shown.ts";

/** Undefined while later text can still decide it. */
export function isShown(
  item: Extract<Item, { kind: "calls" }>,
  after: Item | undefined,
  text: string,
  final: boolean,
): boolean | undefined {
  if (after?.kind === "calls") return !final && (item.weak || after.weak) ? undefined : false;
  const prose = proseOf(after, text);
  if (prose === "") return final ? false : undefined;
  if (item.weak) return true;
  return final || prose.length >= LOOK_AFTER ? commentedAsShown(prose) : undefined;
}

const proseOf = (item: Item | undefined, text: string): string =>
  item?.kind === "prose" ? text.slice(item.from, item.to).trim() : "";

/** The next item that is more than space or a token. */
export function itemAfter(list: readonly Item[], index: number, text: string): Item | undefined {
  for (let at = index + 1; at < list.length; at += 1) {
    const item = list[at];
    if (item === undefined || item.kind === "calls") return item;
    if (item.kind === "prose" && text.slice(item.from, item.to).trim() !== "") return item;
  }
  return undefined;
}

/** Which calls are meant, from the end to the beginning: a bare call counts only if nothing is said behind it. */
function decide(list: readonly Item[], text: string): readonly boolean[] {
  const shown: boolean[] = list.map(() => false);
  let said = false;
  let next: Item | undefined;
  for (let index = list.length - 1; index >= 0; index -= 1) {
    const item = list[index];
    if (item === undefined || item.kind === "hidden") continue;
    if (item.kind === "prose") {
      if (text.slice(item.from, item.to).trim() === "") continue;
      said = true;
      next = item;
      continue;
    }
    shown[index] = item.weak && said ? true : isShown(item, next, text, true) === true;
    if (shown[index] === true) said = true;
    next = shown[index] === true ? { kind: "prose", from: item.from, to: item.to } : item;
  }
  return shown;
}

export interface Judge {
  readonly tools: OfferedTools;
  readonly readers: ReadonlySet<string>;
}

export function settle(list: readonly Item[], text: string, judge: Judge): Reading {
  const shown = decide(list, text);
  const prose: string[] = [];
  const calls: WrittenCall[] = [];
  const malformed: WrittenMalformed[] = [];
  const seen = new Set<string>();
  for (const [index, item] of list.entries()) {
    if (item.kind === "prose" || (item.kind === "calls" && shown[index] === true))
      prose.push(text.slice(item.from, item.to));
    else if (item.kind === "calls")
      for (const found of item.found) {
        const judged = judgeCall(found, judge);
        if (judged === undefined) continue;
        const key = JSON.stringify(judged, sorted);
        if (seen.has(key)) continue;
        seen.add(key);
        if ("args" in judged) calls.push(judged);
        else malformed.push(judged);
      }
  }
  return { calls, malformed, prose: prose.join("").trim() };
}

/** The order of keys makes no other call. */
const sorted = (_key: string, value: unknown): unknown =>
  isRecord(value)
    ? Object.fromEntries(Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1)))
    : value;

const NO_CALLS = new Set(["directly_answer", "directly-answer"]);

function judgeCall(found: Found, { tools, readers }: Judge): WrittenCall | WrittenMalformed | undefined {
  if (NO_CALLS.has(found.name)) return undefined;
  const name = tools.resolve(found.name);
  if (found.broken !== undefined) return { name: name ?? found.name, reason: found.broken };
  if (name === undefined) {
    const near = tools.near(found.name);
    const hint = near === undefined ? `the tools are ${tools.names.join(", ")}` : `did you mean ${near}?`;
    return { name: found.name, reason: `there is no tool called ${JSON.stringify(found.name)}; ${hint}` };
  }
  const args = found.args ?? {};
  if (!isRecord(args)) return { name, reason: "the arguments must be an object with names and values" };
  if (found.repaired && !readers.has(name))
    return {
      name,
      reason: `${CUT} (a quote, a bracket or a tag is missing, and what changes things is not guessed)`,
    };
  const schema = tools.schema(name);
  return { name, args: schema === undefined ? args : typed(args, schema) };
}
