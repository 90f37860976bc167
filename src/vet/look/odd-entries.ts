/** Looks at entries in a tree other than plain files and folders, and at names that are not what they seem. */
import type { TreeEntry } from "../../core/behaviour.ts";
import { foldName, lastName, namesFrom } from "../../core/file-names.ts";
import type { Findings, LookRule } from "./looked-at.ts";
import { visible } from "../../core/visible.ts";

const SETUID_OR_SETGID = 0o6000;
const EXECUTABLE = 0o111;
const HUGE_BYTES = 512 * 2 ** 20;
const MAX_DEPTH = 100;
const MAX_ENTRIES = 20_000;
/** As many links as a system follows for one path. */
const MAX_HOPS = 40;
/** Most links that are followed, by their texts alone. */
const MAX_CIRCLES = 20_000;

/** Programs and libraries that are the same on many machines; links to them are made by tools (`venv`, `nix`). */
const SYSTEM =
  /^\/(?:usr|bin|sbin|lib|lib64|opt|nix\/store|gnu\/store|Library|System|Applications)\/|^\/dev\/null$/;
const SECRET =
  /^\/(?:etc\/(?:shadow|gshadow|sudoers|ssh|ssl\/private|kubernetes)|root(?:\/|$)|proc(?:\/|$)|sys(?:\/|$)|dev\/(?!null$)|(?:var\/)?run\/|var\/lib\/)|(?:^|\/)(?:\.ssh|\.aws|\.gnupg|\.kube|\.docker|\.azure|\.gcloud|\.netrc|\.npmrc|\.pypirc|\.git-credentials|\.password-store|\.bash_history|\.zsh_history|\.vault-token|id_rsa|id_ed25519|docker\.sock)(?:\/|$)/i;
/** An interpreter of a virtual environment, wherever it is installed. */
const INTERPRETER = /^(?:python|pypy|ruby|node)[\d.]*$/;
/** Git no longer follows a link in place of one of these; old versions did. */
const OF_GIT = new Set([".gitmodules", ".gitattributes", ".gitignore", ".mailmap"]);

export class OddEntries {
  readonly #found: Findings;
  readonly #links = new Map<string, string>();
  readonly #wide = new Map<string, number>();
  readonly #shared: string[] = [];
  #deep = false;

  constructor(found: Findings) {
    this.#found = found;
  }

  see(entry: TreeEntry): void {
    const { path, kind, mode } = entry;
    this.#countEntry(path);
    if (kind === "odd")
      this.#found.add(entry.target === "device" ? "files.device" : "files.odd", entry.target ?? "odd", {
        path,
      });
    else if (kind === "link") this.#link(path, entry.target ?? "");
    else if (entry.closed === true)
      this.#found.add("files.closed", "its contents were not examined", { path });
    else if (kind === "file") {
      if ((mode & SETUID_OR_SETGID) !== 0 && (mode & EXECUTABLE) !== 0)
        this.#found.add("files.setuid", `mode ${mode.toString(8)}`, { path });
      if (entry.size > HUGE_BYTES) this.#found.add("files.huge", `${entry.size} bytes`, { path });
      if (entry.names !== undefined && entry.names > 1) this.#shared.push(path);
    }
  }

  /** To be called once all links are known. */
  end(): void {
    for (const path of [...this.#links.keys()].slice(0, MAX_CIRCLES)) this.#checkLoop(path);
    const [first] = this.#shared;
    if (first === undefined) return;
    const more = this.#shared.length === 1 ? "" : `; so do ${this.#shared.length - 1} more files`;
    this.#found.add("files.hard-link", `it has other hard links${more}`, { path: first });
  }

  #countEntry(path: string): void {
    const slash = path.lastIndexOf("/");
    const folder = path.slice(0, Math.max(slash, 0));
    const count = (this.#wide.get(folder) ?? 0) + 1;
    this.#wide.set(folder, count);
    if (count === MAX_ENTRIES)
      this.#found.add("files.wide", `more than ${MAX_ENTRIES} entries`, { path: folder || "." });
    if (this.#deep || path.length < 2 * MAX_DEPTH || path.split("/").length <= MAX_DEPTH) return;
    this.#deep = true;
    this.#found.add("files.deep", `more than ${MAX_DEPTH} folders deep`, { path });
  }

  #link(path: string, target: string): void {
    const name = lastName(path);
    const text = `it leads to ${target}`;
    const linkedPath = linkedNames(path, target);
    if (OF_GIT.has(foldName(name)) && !(foldName(name) === ".gitignore" && linkedPath !== undefined))
      this.#found.add("files.link-git", text, { path });
    else if (linkedPath === undefined) this.#found.add(outside(name, target), text, { path });
    else if (
      linkedPath.some((each) => foldName(each) === ".git") &&
      !path.split("/").some((each) => foldName(each) === ".git")
    )
      this.#found.add("files.link-git", text, { path });
    else this.#links.set(path, linkedPath.join("/"));
  }

  #checkLoop(start: string): void {
    const seen = new Set<string>();
    for (let path: string | undefined = start; path !== undefined; path = this.#next(path)) {
      if ((path === start && seen.size > 0) || seen.size >= MAX_HOPS) {
        this.#found.add("files.link-loop", "it leads back to itself", { path: start });
        return;
      }
      if (seen.has(path)) return;
      seen.add(path);
    }
  }

  /** The target of the link at the path, or at a folder above it. */
  #next(path: string): string | undefined {
    for (let end = path.length; end > 0; end = path.lastIndexOf("/", end - 1)) {
      const led = this.#links.get(path.slice(0, end));
      if (led !== undefined) return led + path.slice(end);
    }
    return undefined;
  }
}

const outside = (
  name: string,
  target: string,
): "files.link-secret" | "files.link-system" | "files.link-out" =>
  SECRET.test(target)
    ? "files.link-secret"
    : SYSTEM.test(target) || (INTERPRETER.test(name) && INTERPRETER.test(target.split("/").at(-1) ?? ""))
      ? "files.link-system"
      : "files.link-out";

/** Names below the tree's top that a link leads to, without following further links; undefined if it leads out. */
function linkedNames(path: string, target: string): readonly string[] | undefined {
  if (target.startsWith("/") || target.startsWith("~") || /^[A-Za-z]:[\\/]|^\\\\/.test(target))
    return undefined;
  return namesFrom(path.split("/").slice(0, -1), target);
}

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

/** Names that read differently from what they are, or that programs take for something else. */
export class OddNames {
  readonly #found: Findings;
  /** Folder and folded name → the entry as it is written. */
  readonly #folded = new Map<string, { readonly path: string; readonly kind: TreeEntry["kind"] }>();

  constructor(found: Findings) {
    this.#found = found;
  }

  see({ path, kind }: TreeEntry): void {
    const name = lastName(path);
    if (name === ".git") return;
    for (const rule of oddIn(name, path === name)) this.#found.add(rule, visible(name), { path });
    this.#alike(path, kind);
  }

  #alike(path: string, kind: TreeEntry["kind"]): void {
    const key = path.split("/").map(foldName).join("/");
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
  if (foldName(name) === ".git") rules.push("names.git-like");
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
