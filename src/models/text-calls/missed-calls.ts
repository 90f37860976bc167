import { isFields } from "../../core/text/json-values.ts";
import type { Found, Reading, WrittenMiss } from "./call-reading.ts";
import { announcesNextStep } from "./hidden-text.ts";
import type { Item } from "./markup.ts";
import { decide, notOffered, OfferedTools } from "./settle.ts";

/**
 * Missed calls: text with the shape and position of a call that may not be run. The reply stays text, and the model is
 * told, because it may believe that it has acted.
 */

/** A text without any of these characters contains no missed call. */
export const MAY_MISS = /[{[`~]/;

const NAME = /^[A-Za-z_][\w.-]{1,63}$/;
/** One capitalised word is more likely a person's name, unless an offered tool contains that word. */
const PERSON_NAME = /^[A-Z][a-z]+$/;

/** Treats every possible tool name as offered, to find everything in a reply that is shaped as a call. */
export class AnyNames extends OfferedTools {
  readonly #offered: OfferedTools;

  constructor(offered: OfferedTools) {
    super(offered.names);
    this.#offered = offered;
  }

  override resolve(written: string): string | undefined {
    const known = super.resolve(written);
    if (known !== undefined || !NAME.test(written)) return known;
    return PERSON_NAME.test(written) && this.#offered.nearest(written).length === 0 ? undefined : written;
  }

  override near(): undefined {
    return undefined;
  }
}

type Calls = Extract<Item, { readonly kind: "calls" }>;

export const weakAsProse = (item: Item): Item =>
  item.kind === "calls" && item.weak ? { kind: "prose", from: item.from, to: item.to } : item;

interface Offered {
  readonly tools: OfferedTools;
  /** The reading in which nothing within prose is a call. */
  readonly asProse: () => Reading;
}

/** `wide`: the items of the same text if every name counts as offered. */
export function withMissed(
  reading: Reading,
  wide: readonly Item[],
  text: string,
  { tools, asProse }: Offered,
): Reading {
  const shown = decide(wide, text);
  const weak = wide.filter((item): item is Calls => item.kind === "calls" && item.weak);
  if (tools.names.length === 0) return reading;
  const strong = wide.some((item) => item.kind === "calls" && !item.weak);
  if (strong) return reading;
  const someShown = weak.some((item) => shown[wide.indexOf(item)] === true);
  const fenced = weak.filter(({ from, to }) => /^\s*(?:```|~~~)/.test(text.slice(from, to)));
  const first = someShown && fenced.length > 1 ? firstOffered(fenced, tools) : undefined;
  if (first !== undefined) return { ...asProse(), missed: [notAlone(first, tools)] };
  if (reading.calls.length + reading.malformed.length > 0 || someShown || weak.length === 0) return reading;
  const before = text.slice(0, weak[0]?.from ?? 0);
  if (wide.some((item) => isProse(item, text)) && !announcesNextStep(before)) return reading;
  const missed = weak.flatMap(({ found }) => found).map((found) => missOf(found, tools));
  return missed.some((each) => each === undefined)
    ? reading
    : { ...reading, missed: missed.filter((each) => each !== undefined) };
}

const isProse = (item: Item, text: string): boolean =>
  item.kind === "prose" && text.slice(item.from, item.to).trim() !== "";

const firstOffered = (items: readonly Calls[], tools: OfferedTools): Found | undefined =>
  items.flatMap(({ found }) => found).find(({ name }) => tools.resolve(name) !== undefined);

const argsOf = ({ args }: Found): WrittenMiss["args"] => (isFields(args) ? args : {});

function notAlone(found: Found, tools: OfferedTools): WrittenMiss {
  const name = tools.resolve(found.name) ?? found.name;
  const reason =
    "only a call that stands alone is run, and your reply has several with words around them; nothing of it was run. Send one call, the first that is needed, and nothing else.";
  return { missed: "not_alone", name, args: argsOf(found), reason, nearest: [] };
}

/** A call of a tool that was not offered, or a call in the same list as such a call. */
function missOf(found: Found, tools: OfferedTools): WrittenMiss | undefined {
  const { args, broken } = found;
  if (broken !== undefined || !isFields(args)) return undefined;
  const name = tools.resolve(found.name);
  if (name === undefined) return notOffered(found, tools);
  const reason = "it stands beside a call of a tool that does not exist; send it again alone";
  return { missed: "not_alone", name, args, reason, nearest: [] };
}
