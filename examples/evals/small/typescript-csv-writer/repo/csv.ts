export function toCsv(rows: readonly (readonly string[])[]): string {
  return rows.map((row) => `${row.join(",")}\n`).join("");
}
