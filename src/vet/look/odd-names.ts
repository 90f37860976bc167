import type { TreeEntry } from "../../core/looked-at.ts";
import { fold } from "../../core/protected-names.ts";
import { lastName } from "../../core/text/file-paths.ts";
import { visible } from "../../core/text/visible.ts";
import type { Found, LookRule } from "./rules.ts";

/** Looks for names that read differently from what they are, or that programs take for something else. */

const PLAIN = /^[A-Za-z0-9_+@%,=#~!&'()[\]{}$;^` .-]*$/;
const BIDI = /[\u202a-\u202e\u2066-\u2069]/u;
/** Marks of direction count, too: in texts of many languages they are usual, in a name nobody sees them. */
const INVISIBLE = /[\p{Default_Ignorable_Code_Point}\u200e\u200f\u061c\u2800]/u;
const LOOK_ALIKE =
  /(?=[\p{L}\p{N}_-]*\p{Script=Latin})[\p{L}\p{N}_-]*[\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Cherokee}\uff01-\uff5e\u{1d400}-\u{1d7ff}]/u;
/** Greek letters that stand for themselves beside Latin ones: units and formulas. */
const UNITS = /[µμΩαβγδεθλπσφχψωΔΣΠΦΨ]/gu;
const RESERVED = /^(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)(?:\.|$)/i;
const RUNS =
  /^--?(?:checkpoint-action|to-command|use-compress-program|rsh|rsync-path|exec|eval|command|upload-pack|receive-pack|config|init-file|rcfile|require|import|proxycommand|oproxycommand|info-script|new-volume-script|pager|editor)=?/i;
const LIES =
  /\.(?:pdf|docx?|xlsx?|pptx?|jpe?g|png|gif|mp[34]|txt|csv)\s*\.(?:exe|scr|com|pif|bat|cmd|vbs|vbe|jse|wsf|ps1|lnk|hta|jar|desktop)$|\s{4,}\.?\w+$/i;
const PROGRAM =
  /^(?:git|node|npm|npx|yarn|pnpm|python3?|py|pip3?|cargo|rustc|go|make|cmd|powershell|pwsh|code|rg|gcc|cc|docker|ssh|curl|where|whoami)\.(?:exe|com|cmd|bat|ps1)$/i;
/** The one name that macOS itself makes with a line end in it. */
const ICON = "Icon\r";

export class OddNames {
  readonly #found: Found;
  /** Folder and folded name → the entry as it is written. */
  readonly #folded = new Map<string, { readonly path: string; readonly kind: TreeEntry["kind"] }>();

  constructor(found: Found) {
    this.#found = found;
  }

  see({ path, kind }: TreeEntry): void {
    const name = lastName(path);
    if (name === ".git") return;
    for (const rule of oddIn(name, path === name)) this.#found.add(rule, visible(name), { path });
    this.#alike(path, kind);
  }

  #alike(path: string, kind: TreeEntry["kind"]): void {
    const key = path.split("/").map(fold).join("/");
    const other = this.#folded.get(key);
    if (other === undefined) {
      this.#folded.set(key, { path, kind });
      return;
    }
    const linked = (kind === "link") !== (other.kind === "link");
    this.#found.add(linked ? "names.same-link" : "names.same", `the same as ${other.path}`, { path });
  }
}

/** The rules that one name breaks. */
function oddIn(name: string, atTop: boolean): readonly LookRule[] {
  const rules: LookRule[] = [];
  if (fold(name) === ".git") rules.push("names.git-like");
  if (name.startsWith("-") && name.length > 1 && !/^-+\d/.test(name))
    rules.push(RUNS.test(name) ? "names.option-runs" : "names.option");
  if (RESERVED.test(name) || /[ .]$/.test(name) || name.includes("\\")) rules.push("names.reserved");
  if (LIES.test(name)) rules.push("names.lies");
  if (atTop && PROGRAM.test(name)) rules.push("names.program");
  if (!PLAIN.test(name)) rules.push(...hiddenIn(name));
  return rules;
}

function hiddenIn(name: string): readonly LookRule[] {
  const rules: LookRule[] = [];
  if (!name.isWellFormed()) rules.push("names.no-text");
  if (/[\u001b\u009b\u009d\u0090]/.test(name)) rules.push("names.escape");
  else if (/[\u0000-\u001f\u007f-\u009f]/.test(name) && name !== ICON) rules.push("names.control");
  if (BIDI.test(name)) rules.push("names.bidi");
  else if (INVISIBLE.test(withoutEmoji(name))) rules.push("names.invisible");
  if (LOOK_ALIKE.test(name.replace(UNITS, ""))) rules.push("names.look-alike");
  return rules;
}

/** Leaves out the invisible characters that make one emoji of several characters: the emoji is seen. */
const withoutEmoji = (name: string): string =>
  name.replace(/(?<=[\p{Extended_Pictographic}\p{Emoji_Modifier}#*0-9])[\ufe0e\ufe0f\u200d]+/gu, "");
