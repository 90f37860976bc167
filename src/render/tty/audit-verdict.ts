import type { AuditVerdict } from "../../core/audit.ts";
import { visibleLine } from "../../core/visible.ts";
import { type Output, styleText } from "./output.ts";

/** What a chain cannot say, however whole it is. */
export const NOT_PROVEN = [
  "that nobody who can write both the audit and the session database made a new chain of other lines",
  "that no whole session was removed",
  "that the file was on the disk before a power cut: nothing waits for that",
] as const;

export function auditVerdict(verdict: AuditVerdict, stream: Output): string {
  const { file, lines, broken, notes } = verdict;
  const count = `${lines} ${lines === 1 ? "line" : "lines"}`;
  const head =
    broken === null
      ? styleText("green", `unbroken: ${count}, each as it was written`, { stream })
      : styleText("red", `broken at line ${broken.line} of ${lines}: ${visibleLine(broken.why)}`, { stream });
  const rows = [
    head,
    visibleLine(file),
    ...notes.map((note) => `note: ${visibleLine(note)}`),
    styleText("dim", "not proven:", { stream }),
    ...NOT_PROVEN.map((each) => styleText("dim", `  ${each}`, { stream })),
  ];
  return `${rows.join("\n")}\n`;
}
