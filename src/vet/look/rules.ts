import { type Finding, hostile, noisy, note, type WeighedRule, type Weight } from "../../core/behaviour.ts";
import { visibleLine } from "../../core/text/visible.ts";

/** Rules on a tree, before anything in it runs. */
export const LOOK_RULES = {
  "look.more": noisy("there is more than was looked at: entries, bytes or findings beyond the bounds"),
  "files.link-out": noisy("a link leads out of the tree"),
  "files.link-system": note("a link leads to a program or library of the system"),
  "files.link-secret": hostile("a link leads to where keys, sockets or the machine's own state lie"),
  "files.link-git": hostile("a link leads into `.git`, or stands in the place of a file that git obeys"),
  "files.link-loop": noisy("links lead round in a circle"),
  "files.hard-link": note("a file has further names, perhaps outside of the tree"),
  "files.odd": noisy("a pipe or socket: who opens it waits, or speaks with whoever made it"),
  "files.device": hostile("a device"),
  "files.setuid": hostile("it runs with the rights of its owner or group"),
  "files.closed": note("a folder that may not be looked into"),
  "files.deep": noisy("folders lie deeper than programs can go"),
  "files.wide": note("a folder with very many entries"),
  "files.huge": note("a very large file"),
  "names.escape": hostile("a name with terminal escapes"),
  "names.control": noisy("a name with control characters"),
  "names.bidi": hostile("a name that turns the line around: it reads otherwise than it is"),
  "names.invisible": noisy("a name with characters that nobody sees"),
  "names.look-alike": noisy("a name that mixes letters of two scripts which look the same"),
  "names.no-text": note("a name that is no UTF-8"),
  "names.option": noisy("a name that programs take for an option"),
  "names.option-runs": hostile("a name that programs take for an option which runs a command"),
  "names.same": note("names that a file system without case, or with normalised names, takes for one"),
  "names.same-link": hostile("a link and another entry that some file systems take for one name"),
  "names.reserved": note("a name that Windows cannot have, or reads otherwise"),
  "names.git-like": hostile("a name that some file systems take for `.git`"),
  "names.lies": noisy("a name that hides its real ending"),
  "names.program": noisy(
    "a program of a usual tool's name at the top: some systems run it in place of that tool",
  ),
  "binary.native": note("compiled code, called as what it is"),
  "binary.program": note("a compiled program without an ending of its kind"),
  "binary.hidden": noisy("a compiled program in a hidden file"),
  "binary.disguised": hostile("a compiled program that is called a picture, a text or a source"),
  "binary.lying-script": hostile("a script that is called a picture, a font or a document"),
  "binary.pickle": hostile("data that runs a command or a text as it is loaded"),
  "binary.pickle-tried": note("the same among the test data of a program"),
  "archive.much": noisy("an archive unpacks to much more than it is"),
  "archive.bomb": hostile("an archive is made to unpack to more than a disk holds"),
  "archive.escapes": hostile(
    "an archive has names or links that lead out of where it is unpacked, or into `.git`",
  ),
  "archive.tried": note("the same among the test data of a program"),
  "git.filter": note("attributes name a filter: a command, where git's settings have it"),
  "git.submodule": hostile(
    "a submodule's path, address or update that makes git run or write something else",
  ),
  "git.bare": note("a folder that git takes for a repository"),
  "git.directory": noisy("a `.git` file that leads elsewhere"),
  "git.hook": note("hooks or aliases of usual tools came along in `.git`"),
  "git.hook-here": noisy("a hook came along in `.git`: git runs it"),
  "git.setting": noisy("settings that came along in `.git` lead git elsewhere"),
  "git.runs": hostile("settings that came along in `.git` make git run a command"),
  "text.tags": hostile("a text that nobody sees, in characters without a shape"),
  "text.bidi": hostile("code that reads otherwise than it is: characters turn the line around"),
  "text.bidi-marks": note("code with characters that turn a line around, and back"),
  "text.invisible": noisy("a name in code with characters that nobody sees"),
  "text.look-alike": noisy("a name in code mixes letters of two scripts which look the same"),
  "text.escape": hostile("a text that people print has escapes which a terminal obeys"),
  "text.overwritten": noisy("a text that people print has lines which are overwritten as they are printed"),
  "text.colours": note("a text that people print has colours of a terminal"),
  "talk.orders": hostile(
    "a file that agents follow tells them to ignore orders, to hide something or to send secrets",
  ),
  "talk.hidden": hostile("a comment or unseen text gives orders to a model"),
  "talk.override": noisy("a text asks a model to ignore its earlier instructions"),
  "talk.hide": noisy("a text asks to hide something from the user"),
  "talk.send": noisy("a text asks to send secrets away"),
  "talk.keys": noisy("a text that speaks to a model asks for keys"),
  "talk.unasked": noisy("a text that speaks to a model asks to run things without asking"),
  "talk.markup": noisy("a text imitates the markup between a model and its harness"),
  "talk.fetch-and-run": noisy("a file that agents follow has them run what they fetch"),
  "talk.quoted": note("a text about such attacks quotes one"),
  "talk.comment": note("a comment speaks to a model"),
  "obeyed.file": note("something on the host runs or obeys it by itself"),
  "obeyed.on-open": noisy("a command that an editor runs when the folder is opened"),
  "obeyed.editor-program": noisy("a setting names a program that the editor runs"),
  "obeyed.agent-command": note("a command that a coding agent runs by itself"),
  "obeyed.agent-address": hostile("a setting sends a coding agent's requests, with its key, elsewhere"),
  "obeyed.modeline": hostile("a line that editors obey has them run a command when the file is opened"),
  "obeyed.loosened": noisy("a setting loosens what an editor or agent asks before it acts"),
  "install.script": note("something runs by itself when it is installed or built"),
  "install.settings": noisy("a setting names a program or code that a package manager loads"),
  "install.registry": note("packages come from another registry"),
  "install.imitated": noisy("packages come from a host whose name imitates that of a usual registry"),
  "install.insecure": noisy("packages come without encryption, or from whoever answers"),
  "install.wrapper": noisy("a build tool is fetched from another address than its own"),
  "install.bin-name": noisy(
    "it installs a command of a usual program's name, which may then run in its place",
  ),
  "install.python-start": noisy("Python runs it whenever it starts"),
  "deps.elsewhere": note("a dependency comes from a repository, an address or a folder, not from a registry"),
  "deps.insecure": noisy("a dependency comes without encryption, or from an address without a name"),
  "deps.near-name": noisy(
    "a dependency's name is that of a widely used package but for a letter, a separator or a scope",
  ),
  "deps.look-alike": hostile("a dependency's name has a letter of another script"),
  "deps.internal": note(
    "a dependency is called as what is a company's own, and comes from everybody's registry",
  ),
  "lock.host": noisy("an entry comes from another host than the rest, or from an address without a name"),
  "lock.insecure": noisy("an entry comes without encryption"),
  "lock.elsewhere": note("an entry comes from a repository, a folder or a private host"),
  "lock.integrity": noisy("an entry has no integrity, and the others have one"),
  "lock.name": hostile("an entry is fetched under another name or version than its own"),
  "lock.alias": note("an entry stands for a package of another name"),
  "lock.extra": noisy("the lock has a dependency that the manifest has not"),
  "lock.unfit": note("the lock has another range than the manifest, or not that dependency"),
  "ci.pull-request-target": note("a workflow runs for strangers' pull requests, with its secrets"),
  "ci.injection": note("a workflow puts a stranger's text into a command"),
  "script.decoded": hostile("hidden code is decoded and run"),
  "script.reverse-shell": hostile("a shell is given to another machine"),
  "script.aside": hostile("code stands far right of where one reads"),
  "code.decoded": hostile("a program's own code decodes hidden code and runs it"),
  "code.reverse-shell": noisy("a program's own code has what gives a shell to another machine"),
  "code.steals": noisy("a program's own code names keys or the environment, and a host that only collects"),
  "script.steals": hostile("keys or the environment are read, and something is sent"),
  "script.secrets": hostile("what runs by itself names where keys lie"),
  "script.metadata": hostile("what runs by itself names a cloud's or an engine's own interface"),
  "script.persists": hostile("what the machine starts later is written"),
  "script.destroys": hostile("what is not its own is destroyed, or the machine is filled"),
  "script.fetch-and-run": hostile("what is fetched is run, by itself"),
  "script.exfil-host": hostile("what runs by itself names a host that only collects what others send"),
  "script.raw-address": noisy("what runs by itself asks an address without a name"),
  "script.privilege": noisy("more rights are taken"),
  "script.hooks": noisy("git hooks or settings are written"),
  "script.environment": noisy("what runs by itself reads the whole environment"),
  "script.tokens": noisy("what runs by itself reads a token, and reaches a network"),
  "script.obfuscated": noisy("what runs by itself hides its text"),
  "script.detached": noisy("something outlives the command that started it"),
  "script.waits": noisy("what runs by itself waits: for long, for a date or for a build machine"),
  "script.who": noisy("what runs by itself reads who and where it is, and reaches a network"),
  "script.network": note("what runs by itself reaches a network"),
  "script.runs-text": noisy("what runs by itself runs a text as code, and reaches a network"),
  "script.fetches-tool": note("a build or test runs what it fetches"),
  "script.fetches-strange": noisy(
    "a build or test runs what it fetches from a host that is not known for it",
  ),
  "script.apart": note(
    "what runs in CI, or to deploy and the like, names keys, an engine or what starts later",
  ),
  "script.tried": note("a test names where keys lie, an engine or what starts later"),
  "change.script": noisy(
    "a change brings something that runs by itself when it is installed or opened, or changes it",
  ),
  "change.obeyed": noisy("a change brings a file that the host obeys by itself, or changes it"),
  "change.look": note("a change brings a file that builds, tests or installations obey, or changes it"),
  "change.program": note("a change makes a file one that can be run"),
  "change.host": note("a change names a host in a source that no source named before"),
  "change.lock-host": noisy("a change has a lock fetch from a host from which it fetched nothing before"),
  "change.dependency": note("a change brings a dependency or another version of it, or takes one away"),
  "change.integrity": hostile("a change gives the same version of a dependency another integrity"),
  "change.unproved": noisy(
    "a change brings an entry without integrity to a lock, or takes its integrity from one",
  ),
  "change.source": noisy("a change has the same version of a dependency come from another host"),
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
export class Found {
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
      .toSorted((a, b) => WEIGHTS.indexOf(a.weight) - WEIGHTS.indexOf(b.weight) || compared(a.rule, b.rule));
  }

  /** All findings that were kept. */
  every(): readonly Finding[] {
    return [...this.#byRule.values()].flatMap((ofRule) => [...ofRule.values()]);
  }
}

const WEIGHTS: readonly Weight[] = ["hostile", "noisy", "note"];

const inOrder = (a: Finding, b: Finding): number =>
  compared(a.rule, b.rule) || compared(a.path ?? "", b.path ?? "") || (a.line ?? 0) - (b.line ?? 0);

const compared = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
