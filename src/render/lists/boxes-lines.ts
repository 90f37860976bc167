import type { ListedBox } from "../../core/ports.ts";
import { formatSize } from "../../core/wording.ts";
import { alignedRows } from "../tty/columns.ts";
import { type Output, styleText } from "../tty/output.ts";

interface TableContext {
  readonly now: number;
  /** Bytes in use by id, where known. */
  readonly memory: ReadonlyMap<string, number>;
}

const HEAD = ["ID", "MODE", "ISOLATION", "STATE", "AGE", "MEMORY", "OWNER", "WORKSPACE"];

/** One line per box. The workspace comes last because only its length varies without limit. */
export function boxTable(boxes: readonly ListedBox[], seen: TableContext, stream: Output): string {
  const rows = [HEAD, ...boxes.map((box) => cells(box, seen))];
  const [head = "", ...lines] = alignedRows(rows);
  return [styleText("bold", head, { stream }), ...lines, ""].join("\n");
}

const cells = (box: ListedBox, { now, memory }: TableContext): readonly string[] => [
  box.id.slice(0, 12),
  box.mode ?? "-",
  oneLine(box.isolation ?? "-"),
  box.parked === null ? box.state : "parked",
  ageOf(now - Date.parse(box.created)),
  memory.has(box.id) ? formatSize(memory.get(box.id) ?? 0) : "-",
  box.parked === null ? ownerCell(box.owner) : waitsCell(box.parked, now),
  oneLine(box.workspace ?? "-"),
];

function ownerCell(owner: ListedBox["owner"]): string {
  if (owner === null) return "-";
  return owner.alive ? String(owner.pid) : `${owner.pid} (gone)`;
}

const waitsCell = ({ session, until }: NonNullable<ListedBox["parked"]>, now: number): string =>
  `${session}, for ${ageOf(Date.parse(until) - now)}`;

/** An age in the largest unit that fits; never negative, even if the clock was set back. */
export function ageOf(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86_400)} days`;
}

/** A folder's name may contain anything, including terminal sequences and direction marks. */
const oneLine = (text: string): string =>
  text.replaceAll(
    /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/gu,
    (mark) => `\\u{${mark.codePointAt(0)?.toString(16) ?? ""}}`,
  );
