import { bytesOfText } from "../../core/byte-text.ts";

const ODD = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800"\\]/u;

/** As git writes names: one that is not plain text stands in quotes, its odd bytes in octal. */
export function printedName(name: string): string {
  if (!ODD.test(name)) return name;
  const bytes = Array.from(bytesOfText(name), (byte) => {
    if (byte === 0x22 || byte === 0x5c) return `\\${String.fromCharCode(byte)}`;
    if (byte === 0x0a) return "\\n";
    if (byte === 0x09) return "\\t";
    return byte < 0x20 || byte > 0x7e ? `\\${byte.toString(8).padStart(3, "0")}` : String.fromCharCode(byte);
  });
  return `"${bytes.join("")}"`;
}
