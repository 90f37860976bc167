import { type Finding, hostile, noisy, note, type VetStep, type WeighedRule } from "../../core/behaviour.ts";
import { visibleLine } from "../../core/text/visible.ts";
import type { SeenChains } from "./process-chain.ts";

/** Rules on what a command does. */
export const RUN_RULES = {
  "run.canary": hostile(
    "it touched something false that nobody has a reason to touch; the command was ended",
  ),
  "run.secret": hostile("it read where keys, passwords, wallets or browsers' data lie"),
  "run.token": noisy("it read the tokens of a package registry, and is not the tool whose they are"),
  "run.environment": noisy("it printed or read the whole environment, where passwords often lie"),
  "run.env-file": note("it read a file of the repository that often holds passwords"),
  "run.search": noisy("it listed a home folder, those of others or the root of the file system"),
  "run.persistence": hostile(
    "it wrote what the machine would run or obey later: shells, sessions, clocks, ssh, git",
  ),
  "run.hooks": hostile("it wrote a hook of git, which the next commit or checkout would run"),
  "run.hooks-tool": noisy("a known manager of git hooks set them up"),
  "run.git-settings": noisy("it changed the repository's own git directory"),
  "run.obeyed": hostile("it wrote settings of an editor or agent, or `.harness`, which the host obeys"),
  "run.obeyed-later": noisy("it wrote files of the repository that the host would later run or obey"),
  "run.tool-settings": noisy("it changed settings that tools obey in every project"),
  "run.path-program": noisy("it wrote into a folder in which shells find programs"),
  "run.path-tool": hostile("it put itself in the place of a usual program"),
  "run.outside-write": noisy("it wrote outside of the repository and of temporary folders"),
  "run.home-files": note("it kept files of its own in the home folder"),
  "run.outside-remove": noisy("it removed what lies outside of the repository"),
  "run.wipe": hostile("it removed much of the repository, of the home folder or of the system"),
  "run.deletes": noisy("it removed many files of the repository"),
  "run.sources": note("it changed files that came with the repository"),
  "run.manifest": noisy("it changed what says how the repository is installed, built or tested"),
  "run.connect": noisy("it tried to reach a host that was not granted"),
  "run.name": noisy("it tried to look a name up"),
  "run.name-data": hostile("a name it tried to look up carries data: who answers for the name reads it"),
  "run.reached": note("it reached a host that was granted"),
  "run.metadata": hostile("it tried to reach the address at which clouds give out credentials"),
  "run.scan": hostile("it tried very many addresses or ports"),
  "run.listen": noisy("it listened on all addresses while it was installed or built"),
  "run.listen-test": note("a test or a given command listened on all addresses"),
  "run.engine": hostile("it tried the socket of a container engine: who has it is root on the host"),
  "run.agent": hostile("it tried a socket through which keys are used: of ssh, gnupg, a keyring"),
  "run.bus": noisy("it tried a socket of the system or of the desktop"),
  "run.socket": noisy("it made a socket of a kind that builds and tests do not need"),
  "run.download": noisy("it started a program that fetches or sends"),
  "run.download-run": hostile("it ran what it was to download"),
  "run.fetches-packages": noisy("a script installed further packages"),
  "run.hidden-code": hostile("it ran code that it first had to decode"),
  "run.remote-shell": hostile("it tried to hand a shell to somebody elsewhere"),
  "run.dropped": noisy("it ran a program that it had first put into a temporary or home folder"),
  "run.no-file": hostile("it ran a program that lies in memory alone, in no file"),
  "run.privileges": noisy("it asked for more rights: sudo, su, pkexec"),
  "run.container-tool": noisy("it started a tool of containers or clusters"),
  "run.recon": noisy("it asked who and where it is, more than an installation needs"),
  "run.attack-tool": noisy("it started a debugger, a sniffer or a scanner"),
  "run.miner": hostile("it started what mines coins"),
  "run.box-check": note("it looked whether it is in a container or a virtual machine"),
  "run.call": hostile("a call to the kernel that no build or test has a reason for"),
  "run.odd-call": noisy("a call to the kernel that builds and tests seldom make"),
  "run.kill": hostile("it tried to signal processes that are not its own"),
  "run.tamper": hostile("it reached for other processes' memory, or for what observes it"),
  "run.device": hostile("it opened a device of the machine"),
  "run.kernel": hostile("it tried to change settings of the kernel"),
  "run.fork-bomb": hostile("it started processes until there was no room for more"),
  "run.memory": noisy("it used up its memory"),
  "run.disk": noisy("it used up its room on the disk"),
  "run.time": noisy("an installation or a build did not end in its time"),
  "run.time-test": note("a test or a given command did not end in its time"),
  "run.waits": noisy("it slept for long while it was installed or built"),
  "run.talk": noisy("it printed orders to a model that reads what commands print"),
  "run.flood": noisy("it printed very much"),
  "run.left-behind": noisy("an installation or a build left processes behind"),
  "run.left-behind-test": note("a test or a given command left processes behind"),
  "run.differs": noisy("it did more where it believed to be somewhere else: in CI, at another date"),
  "run.more": note("it did more than was written down"),
} as const satisfies Readonly<Record<string, WeighedRule>>;

export type RunRule = keyof typeof RUN_RULES;

/** The step that is judged. */
export interface JudgedStep {
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
