/** A file that is looked at, and the rules and findings about what is looked at. */
import { isAscii, isUtf8 } from "node:buffer";
import {
  type Finding,
  hostile,
  type LookedAtTree,
  noisy,
  note,
  type TreeEntry,
  type WeighedRule,
  type Weight,
} from "../../core/behaviour.ts";
import { lastName } from "../../core/file-names.ts";
import { visibleLine } from "../../core/visible.ts";
import { utf16Encoding } from "../../core/raw-data.ts";

/** A file's bytes, read within bounds, and its text if it is a text. */
export interface LookedAtFile {
  readonly path: string;
  /** The last part of the path, as it is and in lower case. */
  readonly name: string;
  readonly lower: string;
  /** The ending in lower case, with the dot; empty where there is none. */
  readonly ending: string;
  readonly mode: number;
  readonly size: number;
  /** The bytes of a text up to a bound; of any other file, only its beginning. */
  readonly bytes: Buffer;
  readonly text: string | undefined;
  readonly ascii: boolean;
  readonly utf8: boolean;
  /** The bytes are all of the file. */
  readonly whole: boolean;
}

const HEAD_BYTES = 2 ** 16;
/** Most bytes of one text. */
const MAX_TEXT = 16 * 2 ** 20;
/** Bytes at a file's beginning that decide whether it is a text. */
const PROBE_BYTES = 2 ** 13;

export async function readLookedAt(tree: LookedAtTree, entry: TreeEntry): Promise<LookedAtFile | undefined> {
  const head = await tree.read(entry.path, HEAD_BYTES);
  if (head === undefined) return undefined;
  const more = entry.size > head.length && isText(head);
  const bytes = bufferOf(more ? ((await tree.read(entry.path, MAX_TEXT)) ?? head) : head);
  const name = lastName(entry.path);
  const lower = name.toLowerCase();
  return {
    path: entry.path,
    name,
    lower,
    ending: lower.lastIndexOf(".") > 0 ? lower.slice(lower.lastIndexOf(".")) : "",
    mode: entry.mode,
    size: entry.size,
    bytes,
    text: textOf(bytes),
    ascii: isAscii(bytes),
    utf8: isUtf8(bytes) || bytes.length < entry.size,
    whole: bytes.length >= entry.size,
  };
}

const bufferOf = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);

const isText = (bytes: Uint8Array): boolean =>
  utf16Encoding(bytes) !== undefined || !bytes.subarray(0, PROBE_BYTES).includes(0);

/**
 * Undefined for a file that is no text. Text in other encodings than UTF-8 is read as Latin-1, so that its words are
 * found.
 */
function textOf(bytes: Buffer): string | undefined {
  const wide = utf16Encoding(bytes);
  if (wide !== undefined) return new TextDecoder(wide).decode(bytes);
  if (!isText(bytes)) return undefined;
  if (isUtf8(bytes)) return bytes.toString("utf8");
  // The bound may have cut a character.
  for (let cut = 1; cut <= 3; cut += 1) {
    const shorter = bytes.subarray(0, bytes.length - cut);
    if (isUtf8(shorter)) return shorter.toString("utf8");
  }
  return bytes.toString("latin1");
}

/** Folders in which tests of readers and unpackers keep data that these refuse. */
export const REFUSED_DATA = /(?:^|\/)(?:fixtures?|__fixtures__|tests?|testdata|test-data|corpus)\//i;

export function lineAt(text: string, index: number): number {
  let line = 1;
  for (let at = text.indexOf("\n"); at !== -1 && at < index; at = text.indexOf("\n", at + 1)) line += 1;
  return line;
}

const CODE = new Set(
  ".js .cjs .mjs .jsx .ts .cts .mts .tsx .py .pyw .rb .php .pl .pm .sh .bash .zsh .fish .ps1 .bat .cmd .c .h .cc .cpp .hpp .cs .java .kt .kts .scala .groovy .gradle .go .rs .swift .lua .r .m .mm .vue .svelte .coffee .ex .exs .erl .clj .sql .mk .cmake .vbs .jl .dart .zig .nim .pth .gemspec".split(
    " ",
  ),
);
const CODE_NAMES =
  /^(?:gnu)?makefile$|^(?:rake|gem|docker|container|jenkins|vagrant|brew|pod|fast|just|earth)file$|^\.(?:envrc|bashrc|zshrc|profile|bash_profile)$/;

export const isCode = ({ ending, lower, text }: LookedAtFile): boolean =>
  CODE.has(ending) || CODE_NAMES.test(lower) || text?.startsWith("#!") === true;

/** Whether people read the file, in a terminal or on a page. */
export const isProse = ({ ending, lower }: LookedAtFile): boolean =>
  /^\.(?:md|mdx|markdown|rst|txt|adoc|asciidoc|org|textile|mdc|man|1|5|7)$/.test(ending) ||
  /^(?:readme|license|licence|copying|changelog|changes|history|news|authors|contributing|notice|install|todo|security)$/.test(
    lower,
  );

const AGENT_NAMES =
  /^(?:(?:agents?|claude|gemini|copilot|codex|qwen|warp|grok|opencode|cursor|kiro|jules|soul|memory)(?:\.[\w-]+)*\.md|skill\.md|copilot-instructions\.md|\.(?:cursor|windsurf|cline|roo|kilocode|trae|augment)rules|\.cursorrules.*|\.goosehints|\.aider.*|llms(?:-full)?\.txt|conventions\.md)$|\.(?:mdc|prompt\.md|instructions\.md|chatmode\.md|agent\.md)$/;
const AGENT_FOLDERS =
  /(?:^|\/)\.(?:claude|codex|agents|gemini|cursor|windsurf|opencode|clinerules|roo|kiro|continue|junie|amazonq|augment|trae|qwen|amp|goose)\//i;

/** Whether coding agents take the file as their instructions. */
export const isForAgents = ({ path, lower }: LookedAtFile): boolean =>
  AGENT_NAMES.test(lower) || AGENT_FOLDERS.test(path);

/** Rules on a tree, before anything in it runs. */
export const LOOK_RULES = {
  "look.more": noisy("not everything was examined: entries, bytes or findings exceed the limits"),
  "files.link-out": noisy("a link leads out of the tree"),
  "files.link-system": note("a link leads to a program or library of the system"),
  "files.link-secret": hostile("a link leads to a place that holds keys, sockets or the machine's own state"),
  "files.link-git": hostile("a link leads into `.git`, or takes the place of a file that git obeys"),
  "files.link-loop": noisy("links form a loop"),
  "files.hard-link": note("a file has other hard links, perhaps outside the tree"),
  "files.odd": noisy("a pipe or socket: opening it may block, or connects to the program that created it"),
  "files.device": hostile("a device"),
  "files.setuid": hostile("a file that runs with the rights of its owner or group (setuid, setgid)"),
  "files.closed": note("a folder that cannot be read"),
  "files.deep": noisy("folders are nested too deep for many programs"),
  "files.wide": note("a folder with very many entries"),
  "files.huge": note("a very large file"),
  "names.escape": hostile("a name with terminal escapes"),
  "names.control": noisy("a name with control characters"),
  "names.bidi": hostile(
    "a name that reverses the text direction, so that it reads differently from what it is",
  ),
  "names.invisible": noisy("a name with invisible characters"),
  "names.look-alike": noisy("a name that mixes look-alike letters of two scripts"),
  "names.no-text": note("a name that is not valid UTF-8"),
  "names.option": noisy("a name that programs read as an option"),
  "names.option-runs": hostile("a name that programs read as an option that runs a command"),
  "names.same": note("names that are the same on file systems that ignore case or normalise names"),
  "names.same-link": hostile("a link and another entry that have the same name on some file systems"),
  "names.reserved": note("a name that Windows does not allow, or reads differently"),
  "names.git-like": hostile("a name that some file systems treat as `.git`"),
  "names.lies": noisy("a name that hides its real extension"),
  "names.program": noisy(
    "a program named like a common tool at the top of the tree: some systems run it instead of that tool",
  ),
  "binary.native": note("compiled code with a matching file extension"),
  "binary.program": note("a compiled program without a matching file extension"),
  "binary.hidden": noisy("a compiled program in a hidden file"),
  "binary.disguised": hostile("a compiled program with the file name of a picture, a text or source code"),
  "binary.lying-script": hostile("a script with the file name of a picture, a font or a document"),
  "binary.pickle": hostile("data that runs a command or code when it is loaded"),
  "binary.pickle-tried": note("such data among a program's test data"),
  "archive.much": noisy("an archive unpacks to many times its own size"),
  "archive.bomb": hostile("an archive is built to unpack to more than a disk holds"),
  "archive.escapes": hostile(
    "an archive has names or links that lead outside the folder it is unpacked in, or into `.git`",
  ),
  "archive.tried": note("such an archive among a program's test data"),
  "git.filter": note("attributes name a filter, which is a command if git's settings define it"),
  "git.submodule": hostile(
    "a submodule's path, address or update setting makes git run or write something else",
  ),
  "git.bare": note("a folder that git treats as a repository"),
  "git.directory": noisy("a `.git` file that leads elsewhere"),
  "git.hook": note("`.git` contains hooks or aliases of common tools"),
  "git.hook-here": noisy("`.git` contains a hook, which git runs"),
  "git.setting": noisy("settings in `.git` point git elsewhere"),
  "git.runs": hostile("settings in `.git` make git run a command"),
  "text.tags": hostile("a text that is hidden in invisible characters"),
  "text.bidi": hostile("code that reads differently from what it is: characters reverse the text direction"),
  "text.bidi-marks": note("code with characters that reverse the text direction and restore it"),
  "text.invisible": noisy("a name in code with invisible characters"),
  "text.look-alike": noisy("a name in code that mixes look-alike letters of two scripts"),
  "text.escape": hostile("a text that people print contains escape sequences that terminals obey"),
  "text.overwritten": noisy("a text that people print contains lines that are overwritten when printed"),
  "text.colours": note("a text that people print contains terminal colours"),
  "talk.orders": hostile(
    "a file that agents follow tells them to ignore orders, to hide something or to send secrets",
  ),
  "talk.hidden": hostile("a comment or invisible text gives orders to a model"),
  "talk.override": noisy("a text asks a model to ignore its earlier instructions"),
  "talk.hide": noisy("a text asks to hide something from the user"),
  "talk.send": noisy("a text asks to send secrets away"),
  "talk.keys": noisy("a text addressed to a model asks for keys"),
  "talk.unasked": noisy("a text addressed to a model asks it to run things without approval"),
  "talk.markup": noisy("a text imitates the markup between a model and its harness"),
  "talk.fetch-and-run": noisy("a file that agents follow makes them run what they download"),
  "talk.quoted": note("a text about such attacks quotes one"),
  "talk.comment": note("a comment addresses a model"),
  "obeyed.file": note("a program on the host runs or obeys it automatically"),
  "obeyed.on-open": noisy("a command that an editor runs when the folder is opened"),
  "obeyed.editor-program": noisy("a setting names a program that the editor runs"),
  "obeyed.agent-command": note("a command that a coding agent runs automatically"),
  "obeyed.agent-address": hostile("a setting sends a coding agent's requests, with its key, elsewhere"),
  "obeyed.modeline": hostile("a line in a file makes editors run a command when they open it"),
  "obeyed.loosened": noisy("a setting makes an editor or agent ask less before it acts"),
  "install.script": note("something runs automatically during installation or build"),
  "install.settings": noisy("a setting names a program or code that a package manager loads"),
  "install.registry": note("packages come from another registry"),
  "install.imitated": noisy("packages come from a host whose name imitates a well-known registry"),
  "install.insecure": noisy("packages are fetched without encryption, or without checking who answers"),
  "install.wrapper": noisy("a build tool is fetched from an address other than its own"),
  "install.bin-name": noisy(
    "it installs a command named like a common program, which may then run instead of that program",
  ),
  "install.python-start": noisy("Python runs it every time it starts"),
  "deps.elsewhere": note("a dependency comes from a repository, an address or a folder, not from a registry"),
  "deps.insecure": noisy("a dependency is fetched without encryption, or from an IP address"),
  "deps.near-name": noisy(
    "a dependency's name differs from that of a widely used package only by a letter, a separator or a scope",
  ),
  "deps.look-alike": hostile("a dependency's name contains a letter of another script"),
  "deps.internal": note(
    "a dependency is named like a company's internal package, and comes from a public registry",
  ),
  "lock.host": noisy("an entry comes from a different host than the rest, or from an IP address"),
  "lock.insecure": noisy("an entry is fetched without encryption"),
  "lock.elsewhere": note("an entry comes from a repository, a folder or a private host"),
  "lock.integrity": noisy("an entry has no integrity hash, although the others have one"),
  "lock.name": hostile("an entry is fetched under a name or version other than its own"),
  "lock.alias": note("an entry stands for a package of another name"),
  "lock.extra": noisy("the lock has a dependency that the manifest does not have"),
  "lock.unfit": note("the lock has a different range than the manifest, or lacks the dependency"),
  "ci.pull-request-target": note("a workflow runs for strangers' pull requests, with its secrets"),
  "ci.injection": note("a workflow puts a stranger's text into a command"),
  "script.decoded": hostile("hidden code is decoded and run"),
  "script.reverse-shell": hostile("a shell is opened for another machine"),
  "script.aside": hostile("code is pushed far to the right, out of view"),
  "code.decoded": hostile("a program's own code decodes hidden code and runs it"),
  "code.reverse-shell": noisy("a program's own code can open a shell for another machine"),
  "code.steals": noisy(
    "a program's own code names keys or the environment, and a host that only collects data",
  ),
  "script.steals": hostile("keys or the environment are read, and something is sent"),
  "script.secrets": hostile("code that runs automatically names a place that holds keys"),
  "script.metadata": hostile(
    "code that runs automatically names the interface of a cloud or a container engine",
  ),
  "script.persists": hostile("something that the machine starts later is written"),
  "script.destroys": hostile("something that is not its own is destroyed, or the machine is filled up"),
  "script.fetch-and-run": hostile("a download is run automatically"),
  "script.exfil-host": hostile("code that runs automatically names a host that only collects data"),
  "script.raw-address": noisy("code that runs automatically contacts an IP address"),
  "script.privilege": noisy("more privileges are taken"),
  "script.hooks": noisy("git hooks or settings are written"),
  "script.environment": noisy("code that runs automatically reads the whole environment"),
  "script.tokens": noisy("code that runs automatically reads a token and reaches a network"),
  "script.obfuscated": noisy("code that runs automatically is obfuscated"),
  "script.detached": noisy("a process outlives the command that started it"),
  "script.waits": noisy(
    "code that runs automatically waits: for a long time, for a date or for a build machine",
  ),
  "script.who": noisy("code that runs automatically reads its user and machine, and reaches a network"),
  "script.network": note("code that runs automatically reaches a network"),
  "script.runs-text": noisy("code that runs automatically evaluates a text as code, and reaches a network"),
  "script.fetches-tool": note("a build or test runs what it downloads"),
  "script.fetches-strange": noisy(
    "a build or test runs what it downloads from a host that is not known for it",
  ),
  "script.apart": note(
    "code for CI, deployment and similar tasks names keys, an engine or something that starts later",
  ),
  "script.tried": note("a test names keys, an engine or something that starts later"),
  "change.script": noisy(
    "a change adds or modifies something that runs automatically on installation or opening",
  ),
  "change.obeyed": noisy("a change adds or modifies a file that the host obeys automatically"),
  "change.look": note("a change adds or modifies a file that builds, tests or installations obey"),
  "change.program": note("a change makes a file executable"),
  "change.host": note("a change names a host that no source named before"),
  "change.lock-host": noisy("a change makes a lock fetch from a host that it did not use before"),
  "change.dependency": note("a change adds, updates or removes a dependency"),
  "change.integrity": hostile("a change gives the same version of a dependency a different integrity hash"),
  "change.unproved": noisy(
    "a change adds a lock entry without an integrity hash, or removes the hash of one",
  ),
  "change.source": noisy("a change makes the same version of a dependency come from another host"),
} as const satisfies Readonly<Record<string, WeighedRule>>;

export type LookRule = keyof typeof LOOK_RULES;

interface Place {
  readonly path?: string;
  readonly line?: number;
}

/** Most findings of one rule that are shown; any more are only counted. */
const MAX_SHOWN = 20;
/** Most findings of one rule that are kept, so that trees can be compared. */
const MAX_KEPT = 2000;

/** The findings, each once, and a bounded number for each rule. */
export class Findings {
  readonly #byRule = new Map<LookRule, Map<string, Finding>>();
  readonly #more = new Map<LookRule, number>();

  /** Makes text and path visible: anybody may have chosen them. */
  add(rule: LookRule, text: string, { path, line }: Place = {}): void {
    const ofRule = this.#byRule.get(rule) ?? new Map<string, Finding>();
    this.#byRule.set(rule, ofRule);
    const key = `${path ?? ""}\n${line ?? 0}\n${text}`;
    if (ofRule.has(key)) return;
    if (ofRule.size >= MAX_KEPT) {
      this.#more.set(rule, (this.#more.get(rule) ?? 0) + 1);
      return;
    }
    ofRule.set(key, {
      rule,
      weight: LOOK_RULES[rule].weight,
      text: visibleLine(text),
      ...(path === undefined ? {} : { path: visibleLine(path) }),
      ...(line === undefined ? {} : { line }),
    });
  }

  /** The gravest first, then by rule and path; a few of each rule, and how many more there are. */
  all(): readonly Finding[] {
    const lists = [...this.#byRule].map(([rule, ofRule]) => {
      const each = [...ofRule.values()].toSorted(inOrder);
      const times = Math.max(0, each.length - MAX_SHOWN) + (this.#more.get(rule) ?? 0);
      const { weight, words } = LOOK_RULES[rule];
      const more = times === 0 ? [] : [{ rule, weight, text: `and ${times} more: ${words}`, times }];
      return [...each.slice(0, MAX_SHOWN), ...more];
    });
    return lists
      .flat()
      .toSorted(
        (a, b) => WEIGHTS.indexOf(a.weight) - WEIGHTS.indexOf(b.weight) || compareTexts(a.rule, b.rule),
      );
  }

  /** All findings that were kept. */
  every(): readonly Finding[] {
    return [...this.#byRule.values()].flatMap((ofRule) => [...ofRule.values()]);
  }
}

const WEIGHTS: readonly Weight[] = ["hostile", "noisy", "note"];

const inOrder = (a: Finding, b: Finding): number =>
  compareTexts(a.rule, b.rule) || compareTexts(a.path ?? "", b.path ?? "") || (a.line ?? 0) - (b.line ?? 0);

const compareTexts = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
