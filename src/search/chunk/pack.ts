import type { Piece } from "../words.ts";
import { MOST, SMALL, TARGET, TINY } from "./limits.ts";
import { lineCuts, Lines } from "./lines.ts";
import { jointKind, jointNames, type Mark, type Part, partsOf } from "./marks.ts";

/** The pieces of a text: what is small joined with its neighbours, what is big split. An empty text has none. */
export function pack(text: string, marks: readonly Mark[]): readonly Piece[] {
  const parts = partsOf(text, marks).flatMap((part) => split(text, part));
  const groups: Group[] = [];
  for (const part of parts) place(text, groups, part);
  const lines = new Lines(text);
  return tidied(groups).map((group) => {
    const start = lines.of(group.start);
    const end = lines.of(group.end - 1);
    const { names } = jointNames(group.parts);
    const symbol = names.length === 0 ? null : names.join(", ");
    return { start, end, kind: group.kind(), symbol, text: text.slice(group.start, group.end) };
  });
}

class Group {
  readonly parts: Part[];
  readonly start: number;
  end: number;

  constructor(part: Part, start = part.start) {
    this.parts = [part];
    this.start = start;
    this.end = part.end;
  }

  get first(): Part {
    return this.parts[0] as Part;
  }

  get size(): number {
    return this.end - this.start;
  }

  add(part: Part): void {
    this.parts.push(part);
    this.end = part.end;
  }

  take(group: Group): void {
    this.parts.push(...group.parts);
    this.end = group.end;
  }

  kind(): Piece["kind"] {
    const own = this.parts.filter((part) => part.own);
    return jointKind((own.length === 0 ? this.parts : own).map((part) => part.kind));
  }
}

function split(text: string, part: Part): readonly Part[] {
  if (part.end - part.start <= MOST) return part.end > part.start ? [part] : [];
  const cuts = lineCuts(text, part, { target: TARGET, most: MOST });
  return [part.start, ...cuts].map((start, index) => ({ ...part, start, end: cuts[index] ?? part.end }));
}

/** Adds a part to the last group, or begins another. What is next to nothing never stands alone. */
function place(text: string, groups: Group[], part: Part): void {
  const last = groups.at(-1);
  if (last === undefined || part.end - last.start > MOST) groups.push(new Group(part));
  else if (nothing(text, part) && part.kind !== "imports") last.end = part.end;
  else if (last.parts.length === 1 && part.kind === "imports" && nothing(text, last.first))
    groups.splice(-1, 1, new Group(part, last.start));
  else if (joins(last, part)) last.add(part);
  else groups.push(new Group(part));
}

const nothing = (text: string, { own, start, end }: Part): boolean =>
  !own && end - start < 400 && text.slice(start, end).trim().length < TINY;

/** Whether a part lies in what the group is of: the same surroundings, or a body behind its head. */
const near = (group: Group, part: Part): boolean =>
  part.scope === group.first.scope ||
  group.parts.some(({ names }) => part.scope !== "" && names[0] === part.scope);

/** Only of what is together no longer than a piece may be. */
function joins(group: Group, part: Part): boolean {
  const size = part.end - part.start;
  if ((group.first.kind === "imports") !== (part.kind === "imports") || !near(group, part)) return false;
  // The head of a class alone says little.
  if (group.first.kind === "class" && group.size < SMALL / 2 && part.scope !== group.first.scope) return true;
  if (group.size + size > TARGET) return false;
  if (part.kind === "imports" || !part.own) return true;
  if (part.kind === "class" && group.size > SMALL) return false;
  return size < SMALL || group.size < SMALL;
}

/** The rest of a split declaration, when it is small, goes to what is before it. */
function tidied(groups: readonly Group[]): readonly Group[] {
  const kept: Group[] = [];
  for (const group of groups) {
    const last = kept.at(-1);
    const rest = last !== undefined && group.size < SMALL && group.end - last.start <= MOST;
    if (rest && group.parts.every((part) => !part.own && near(last, part) && part.kind !== "imports"))
      last.take(group);
    else kept.push(group);
  }
  return kept;
}
