/** Rules on what a command does, the findings of one step, and the processes that led to each. */
import {
  type Act,
  type Finding,
  hostile,
  noisy,
  note,
  type SeenProcess,
  type VetStep,
  type WeighedRule,
} from "../core/behaviour.ts";
import { visibleLine } from "../core/visible.ts";
import { lastName } from "../core/file-names.ts";
import { truncate } from "../core/wording.ts";

export const RUN_RULES = {
  "run.canary": hostile("it touched a canary, which nothing has a reason to touch; the command was stopped"),
  "run.secret": hostile("it read from places that hold keys, passwords, wallets or browser data"),
  "run.token": noisy("it read a package registry's tokens, and is not the tool that they belong to"),
  "run.environment": noisy("it printed or read the whole environment, which often holds passwords"),
  "run.env-file": note("it read a file of the repository that often holds passwords"),
  "run.search": noisy("it listed a home folder, other users' home folders or the root of the file system"),
  "run.persistence": hostile(
    "it wrote something that the machine runs or obeys later: shell start-up, sessions, schedules, ssh, git",
  ),
  "run.hooks": hostile("it wrote a git hook, which the next commit or checkout would run"),
  "run.hooks-tool": noisy("a known manager of git hooks installed hooks"),
  "run.git-settings": noisy("it changed the repository's own git directory"),
  "run.obeyed": hostile("it wrote settings of an editor or agent, or `.harness`, which the host obeys"),
  "run.obeyed-later": noisy("it wrote files of the repository that the host would later run or obey"),
  "run.tool-settings": noisy("it changed settings that tools obey in every project"),
  "run.path-program": noisy("it wrote into a folder where shells look for programs"),
  "run.path-tool": hostile("it put itself in place of a common program"),
  "run.outside-write": noisy("it wrote outside the repository and temporary folders"),
  "run.home-files": note("it kept files of its own in the home folder"),
  "run.outside-remove": noisy("it removed something outside the repository"),
  "run.wipe": hostile("it removed much of the repository, the home folder or the system"),
  "run.deletes": noisy("it removed many files of the repository"),
  "run.sources": note("it changed files that came with the repository"),
  "run.manifest": noisy("it changed files that define how the repository is installed, built or tested"),
  "run.connect": noisy("it tried to reach a host that was not granted"),
  "run.name": noisy("it tried to look up a host name"),
  "run.name-data": hostile("it tried to look up a name that carries data to whoever answers for that name"),
  "run.reached": note("it reached a host that was granted"),
  "run.metadata": hostile("it tried to reach an address at which clouds hand out credentials"),
  "run.scan": hostile("it tried very many addresses or ports"),
  "run.listen": noisy("it listened on all addresses during installation or build"),
  "run.listen-test": note("a test or a given command listened on all addresses"),
  "run.engine": hostile("it tried the socket of a container engine, which gives root access to the host"),
  "run.agent": hostile("it tried a socket that gives the use of keys: ssh, GnuPG or a keyring"),
  "run.bus": noisy("it tried a socket of the system or the desktop"),
  "run.socket": noisy("it created a kind of socket that builds and tests do not need"),
  "run.download": noisy("it started a program that downloads or sends data"),
  "run.download-run": hostile("it ran a download directly"),
  "run.fetches-packages": noisy("a script installed more packages"),
  "run.hidden-code": hostile("it ran code that it had decoded"),
  "run.remote-shell": hostile("it tried to open a shell for another machine"),
  "run.dropped": noisy("it ran a program that it had placed in a temporary or home folder"),
  "run.no-file": hostile("it ran a program that exists only in memory"),
  "run.privileges": noisy("it requested more privileges: sudo, su, pkexec"),
  "run.container-tool": noisy("it started a container or cluster tool"),
  "run.recon": noisy("it collected more facts about its user and machine than an installation needs"),
  "run.attack-tool": noisy("it started a debugger, a sniffer or a scanner"),
  "run.miner": hostile("it started a cryptocurrency miner"),
  "run.box-check": note("it checked whether it runs in a container or a virtual machine"),
  "run.call": hostile("it made a system call that no build or test has a reason for"),
  "run.odd-call": noisy("it made a system call that builds and tests rarely make"),
  "run.kill": hostile("it tried to signal processes that are not its own"),
  "run.tamper": hostile("it tried to access other processes' memory, or to interfere with the observation"),
  "run.device": hostile("it opened a device of the machine"),
  "run.kernel": hostile("it tried to change kernel settings"),
  "run.fork-bomb": hostile("it started processes until the limit was reached"),
  "run.memory": noisy("it used up its memory"),
  "run.disk": noisy("it used up its disk space"),
  "run.time": noisy("an installation or a build did not finish in time"),
  "run.time-test": note("a test or a given command did not finish in time"),
  "run.waits": noisy("it slept for a long time during installation or build"),
  "run.talk": noisy("it printed orders for a model that reads the output"),
  "run.flood": noisy("it printed a very large amount"),
  "run.left-behind": noisy("an installation or a build left processes behind"),
  "run.left-behind-test": note("a test or a given command left processes behind"),
  "run.differs": noisy("it did more when run as if elsewhere: in CI, or on another date"),
  "run.more": note("it did more than was recorded"),
} as const satisfies Readonly<Record<string, WeighedRule>>;

export type RunRule = keyof typeof RUN_RULES;

/** The step that is judged. */
interface JudgedStep {
  readonly number: number;
  readonly what: VetStep["what"];
}

/** Most findings of one rule in one step; any more are only counted. */
const MAX_SHOWN = 12;

interface CountedFinding {
  readonly finding: Finding;
  times: number;
}

/** The findings of one step, each once, and a bounded number for each rule. */
export class ActFindings {
  readonly #step: JudgedStep;
  readonly #chains: SeenChains;
  readonly #byRule = new Map<RunRule, Map<string, CountedFinding>>();
  readonly #more = new Map<RunRule, number>();

  constructor(step: JudgedStep, chains: SeenChains) {
    this.#step = step;
    this.#chains = chains;
  }

  /** Makes text and path visible: anybody may have chosen them. */
  add(
    rule: RunRule,
    text: string,
    act: { readonly pid: number; readonly at: number; readonly times?: number } | null,
    path?: string,
  ): void {
    const ofRule = this.#byRule.get(rule) ?? new Map<string, CountedFinding>();
    this.#byRule.set(rule, ofRule);
    // A file that is made and then written is one finding.
    const key = path ?? text;
    const known = ofRule.get(key);
    if (known !== undefined) {
      known.times += act?.times ?? 1;
      return;
    }
    if (ofRule.size >= MAX_SHOWN) {
      this.#more.set(rule, (this.#more.get(rule) ?? 0) + 1);
      return;
    }
    const by = act === null ? [] : this.#chains.of(act.pid, act.at);
    const finding: Finding = {
      rule,
      weight: RUN_RULES[rule].weight,
      text: visibleLine(text),
      ...(path === undefined ? {} : { path: visibleLine(path) }),
      step: this.#step.number,
      ...(by.length === 0 ? {} : { by }),
    };
    ofRule.set(key, { finding, times: act?.times ?? 1 });
  }

  has(rule: RunRule): boolean {
    return this.#byRule.has(rule);
  }

  all(): readonly Finding[] {
    const each = [...this.#byRule.values()].flatMap((ofRule) =>
      [...ofRule.values()].map(({ finding, times }) => (times > 1 ? { ...finding, times } : finding)),
    );
    const more = [...this.#more].map(([rule, times]): Finding => {
      const { weight, words } = RUN_RULES[rule];
      return { rule, weight, text: `and ${times} more: ${words}`, step: this.#step.number, times };
    });
    return [...each, ...more];
  }
}

const MAX_WORDS = 120;
const MAX_LINKS = 12;

/** Which process started which, as seen in one command. */
export class SeenChains {
  readonly #byPid: ReadonlyMap<number, readonly SeenProcess[]>;
  readonly #workspace: string;

  constructor(processes: readonly SeenProcess[], workspace: string) {
    this.#byPid = Map.groupBy(
      processes.toSorted((one, other) => one.at - other.at),
      ({ pid }) => pid,
    );
    this.#workspace = workspace;
  }

  /** The program that a process was at that time. */
  at(pid: number, at: number): SeenProcess | undefined {
    const own = this.#byPid.get(pid);
    return own?.findLast((each) => each.at <= at) ?? own?.[0];
  }

  /** The commands that led to the process, the outermost first; made visible and cut. */
  of(pid: number, at: number): readonly string[] {
    return this.#lineOf(pid, at).map(({ words }) => commandText(words));
  }

  #lineOf(pid: number, at: number): readonly SeenProcess[] {
    const line: SeenProcess[] = [];
    const seen = new Set<number>();
    let [next, when] = [pid, at];
    while (!seen.has(next) && line.length < MAX_LINKS) {
      seen.add(next);
      const found = this.at(next, when);
      if (found === undefined) break;
      line.unshift(found);
      [next, when] = [found.parent, found.at];
    }
    return line;
  }

  /** Whether the process is a tool of this name that does not lie in the repository: by its program, or its script. */
  isTool(pid: number, at: number, names: ReadonlySet<string>): boolean {
    const words = this.at(pid, at)?.words ?? [];
    return toolNames(words, this.#workspace).some((name) => names.has(name));
  }

  /** Whether the process is such a tool, or something that such a tool started. */
  isUnder(pid: number, at: number, names: ReadonlySet<string>): boolean {
    return this.#lineOf(pid, at).some(({ words }) =>
      toolNames(words, this.#workspace).some((name) => names.has(name)),
    );
  }
}

const INTERPRETERS = /^(?:node|python[\d.]*|ruby|perl|php|sh|bash|dash|zsh|env)$/;

/**
 * Names of the program of a command line and of the script that it interprets, if these do not lie in the repository.
 */
function toolNames(words: readonly string[], workspace: string): readonly string[] {
  const [program = "", script = ""] = words;
  const names = isOutside(program, workspace) ? [lastName(program)] : [];
  if (INTERPRETERS.test(lastName(program)) && script.startsWith("/") && isOutside(script, workspace))
    names.push(lastName(script).replace(/\.(?:c|m)?js$/, ""));
  return names;
}

const isOutside = (word: string, workspace: string): boolean =>
  !word.startsWith("./") &&
  !word.startsWith("../") &&
  !word.startsWith(`${workspace}/`) &&
  !/^[^/]+\//.test(word);

function commandText(words: readonly string[]): string {
  const text = visibleLine(
    words.map((word) => (/^[\w@%+=:,./~-]+$/.test(word) ? word : `'${word}'`)).join(" "),
  );
  return truncate(text, MAX_WORDS);
}

export type PathAct = Extract<Act, { readonly path: string }>;
export type SocketAct = Extract<Act, { readonly address: string }>;
export type NameAct = Extract<Act, { readonly kind: "name" }>;
export type CallAct = Extract<Act, { readonly kind: "call" }>;

export const isPathAct = (act: Act): act is PathAct => "path" in act;
export const isSocketAct = (act: Act): act is SocketAct => "address" in act;
export const isCallAct = (act: Act): act is CallAct => act.kind === "call";
