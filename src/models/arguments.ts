import { reasonOf } from "../core/errors.ts";
import type { ToolCall } from "../core/messages.ts";
import { JsonEnds, surveyJson } from "./json-text.ts";

export type Arguments = { readonly args: ToolCall["args"] } | { readonly wrong: string };

/** Deeper than any tool's input; what walks over arguments need not fear for its stack. */
const DEEPEST = 64;
const LONGEST_SHOWN = 200;

/**
 * The arguments of a call, in the one way that they can be read. Arguments that came as JSON text inside of a string are
 * read too; nothing is mended.
 */
export function readArguments(text: string): Arguments {
  const outer = text.trim() === "" ? "{}" : text;
  const first = parsed(outer);
  if ("wrong" in first) return first;
  if (typeof first.value !== "string") return checked(outer, first.value);
  const inner = parsed(first.value);
  return "wrong" in inner ? { wrong: noObject(first.value) } : checked(first.value, inner.value);
}

function checked(json: string, value: unknown): Arguments {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return { wrong: noObject(value) };
  const { depth, twice } = surveyJson(json);
  if (twice !== null)
    return { wrong: `The key ${shown(JSON.stringify(twice))} stands twice in its arguments: give it once.` };
  if (depth > DEEPEST) return { wrong: `Its arguments are nested deeper than ${DEEPEST} levels.` };
  return { args: value as ToolCall["args"] };
}

function parsed(json: string): { readonly value: unknown } | { readonly wrong: string } {
  try {
    return { value: JSON.parse(json) as unknown };
  } catch (thrown) {
    const ends = new JsonEnds();
    ends.push(json);
    return {
      wrong: ends.open
        ? "Its arguments were cut before their end. Send the call again, whole; long content in several smaller calls."
        : `Its arguments are no JSON (${shown(reasonOf(thrown))}). Send the call again with one JSON object.`,
    };
  }
}

function noObject(value: unknown): string {
  const kind = Array.isArray(value) ? "a list" : value === null ? "null" : `a ${typeof value}`;
  return `Its arguments are ${kind}, not one JSON object with a key for each argument.`;
}

const shown = (text: string): string => text.slice(0, LONGEST_SHOWN).toWellFormed();
