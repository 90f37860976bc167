/** Judges processes by their words. */
import type { Observed, SeenProcess, VetStep } from "../core/behaviour.ts";
import { lastName } from "../core/file-names.ts";
import type { ActFindings, CallAct, PathAct, RunRule, SeenChains } from "./act-rules.ts";

const set = (names: string): ReadonlySet<string> => new Set(names.split(" "));

const DOWNLOADERS = set(
  "curl wget wget2 nc ncat netcat nc.openbsd nc.traditional socat telnet ssh scp sftp ftp tftp aria2c lynx elinks dig nslookup host ping ping6 rsync mail sendmail",
);
const PROGRAMS: readonly (readonly [ReadonlySet<string>, RunRule])[] = [
  [
    set("crontab at batch systemctl launchctl update-rc.d chkconfig chsh useradd usermod adduser visudo"),
    "run.persistence",
  ],
  [set("sudo su doas pkexec runuser"), "run.privileges"],
  [
    set("docker podman nerdctl kubectl ctr runc crictl nsenter chroot unshare lxc machinectl"),
    "run.container-tool",
  ],
  [set("gdb strace ltrace tcpdump tshark nmap masscan arp-scan hydra john hashcat"), "run.attack-tool"],
  [set("xmrig minerd cpuminer ethminer cgminer bfgminer t-rex lolminer nbminer"), "run.miner"],
  [set("secret-tool security keyctl"), "run.secret"],
];
const RECON = set(
  "whoami id ifconfig ip netstat ss last w who users lscpu dmidecode lsblk arp route hostnamectl ps groups getent lsof env printenv ipconfig systeminfo",
);
const MIN_RECON = 3;
const USER_QUESTIONS = set("whoami id groups w who users");

/**
 * What a program asks about the machine; undefined for a single fact that scripts need, such as the number of the user.
 */
function reconOf(name: string, words: readonly string[]): string | undefined {
  if (!RECON.has(name)) return undefined;
  const [option = ""] = words.slice(1);
  if (name === "id" && /^-\w{1,2}$/.test(option)) return undefined;
  // With a program among its words, env starts that program.
  if (name === "env" && words.slice(1).some((word) => !word.startsWith("-") && !word.includes("=")))
    return undefined;
  return USER_QUESTIONS.has(name) ? "who" : name;
}

/** Texts that are given to shells and interpreters. */
const TEXTS: readonly (readonly [RegExp, RunRule, string])[] = [
  [
    /\b(?:curl|wget)\b[^;&]*\|\s*(?:sudo\s+)?(?:env\s+)?(?:ba|z|da|k)?sh\b/,
    "run.download-run",
    "runs what it downloads",
  ],
  [
    /\b(?:ba|z|da|k)?sh\s+(?:-c\s+)?["']?(?:<\(|\$\(|`)\s*(?:curl|wget)\b/,
    "run.download-run",
    "runs what it downloads",
  ],
  [
    /\b(?:curl|wget)\b[^|;&]*\|\s*(?:python[\d.]*|node|perl|ruby|php)\b/,
    "run.download-run",
    "runs what it downloads",
  ],
  [/\beval\s+["']?(?:\$\(|`)\s*(?:curl|wget)\b/, "run.download-run", "runs what it downloads"],
  [
    /\bbase64\s+(?:-d|-D|--decode|-di)\b[^;]*\|\s*(?:sudo\s+)?(?:(?:ba|z|da|k)?sh|python[\d.]*|node|perl|ruby|php)\b/,
    "run.hidden-code",
    "runs text that it decodes",
  ],
  [
    /\b(?:xxd\s+-r|openssl\s+(?:enc|base64)\b[^|;]*-d|rev|tr\s+\S+\s+\S+|gunzip|zcat|gzip\s+-dc?)\b[^;|]*\|\s*(?:(?:ba|z|da|k)?sh|python[\d.]*|node|perl)\b/,
    "run.hidden-code",
    "runs text that it decodes",
  ],
  [
    /\beval\b[^;]*\b(?:base64|xxd|openssl|rev|printf\s+['"]?\\x)/,
    "run.hidden-code",
    "runs text that it decodes",
  ],
  [
    /\b(?:exec|eval)\s*\(.{0,200}(?:b64decode|base64|fromhex|unhexlify|decompress|marshal\.loads|codecs\.decode|rot13)/s,
    "run.hidden-code",
    "runs text that it decodes",
  ],
  [
    /\b(?:eval|Function)\s*\(.{0,200}(?:atob|['"](?:base64|hex)['"]|fromCharCode)/s,
    "run.hidden-code",
    "runs text that it decodes",
  ],
  [/\/dev\/(?:tcp|udp)\//, "run.remote-shell", "opens a connection from the shell itself"],
  [
    /\b(?:nc|ncat|netcat)\b[^;|]*\s-(?:\w*[ec]\w*)\s+\S*sh\b/,
    "run.remote-shell",
    "connects a shell to the network",
  ],
  [/\bsocat\b.*\bexec:/i, "run.remote-shell", "connects a shell to the network"],
  [/\bsh\s+-i\b.*(?:>&|\d>&\d|<&)/, "run.remote-shell", "connects a shell to the network"],
  [
    /\brm\s+(?:-\w+\s+)*-\w*[rR]\w*\s+(?:-\w+\s+)*(?:--no-preserve-root\s+)?["']?(?:\/|~|\$HOME|\$\{HOME\}|\/\*|~\/\*|\/home|\/etc|\/usr|\/var)["']?(?:\/\*)?(?:\s|;|$|&|\|)/,
    "run.wipe",
    "removes a whole home folder or the system",
  ],
  [/\bstratum\+(?:tcp|ssl):/, "run.miner", "connects to a mining pool"],
  [/\bcrontab\s+(?:-(?!l)|\S)|>>?\s*\/etc\/cron/, "run.persistence", "schedules a command"],
  [/\bgpg\b.*--export-secret/, "run.secret", "exports secret keys"],
  [/\bhistory\s+-c\b|\bunset\s+HISTFILE\b/, "run.tamper", "hides the command history"],
  [/:\s*\(\s*\)\s*\{\s*:\s*\|\s*:\s*&?\s*\}/, "run.fork-bomb", "is a fork bomb"],
];

const LOCAL = /(?:^|[/@])(?:localhost|127\.\d+\.\d+\.\d+|\[::1\]|0\.0\.0\.0)(?=[:/]|$)/;
const ASKS_ITSELF = /^(?:--version|-V|--help|-h|version)$/;

export function judgeProcesses(
  { processes }: Pick<Observed, "processes">,
  { what }: Pick<VetStep, "what">,
  chains: SeenChains,
  found: ActFindings,
): void {
  const recon = new Map<string, SeenProcess>();
  for (const process of processes) {
    const name = programOf(process);
    judgeProgram(process, name, found);
    judgeTexts(process, found);
    const asks = reconOf(name, process.words);
    if (asks !== undefined && !recon.has(asks)) recon.set(asks, process);
    if (what !== "given") judgeWaits(process, name, what, found);
    judgeFetches(process, name, chains, found);
  }
  const [first] = recon.values();
  if (recon.size >= MIN_RECON && first !== undefined)
    found.add("run.recon", `runs ${[...recon.values()].map(programOf).join(", ")}`, first);
  judgePipes(processes, found);
}

const programOf = ({ words }: SeenProcess): string => lastName(words[0] ?? "").replace(/^-/, "");

function judgeProgram(process: SeenProcess, name: string, found: ActFindings): void {
  const { words } = process;
  const text = words.slice(0, 8).join(" ");
  if (words.slice(1).some((word) => ASKS_ITSELF.test(word)) && words.length <= 3) return;
  if (DOWNLOADERS.has(name) && fetches(name, words)) found.add("run.download", `starts ${text}`, process);
  if (
    name === "git" &&
    words.some((word) => /^(?:https?|ssh|git):\/\/|^[\w.-]+@[\w.-]+:/.test(word) && !LOCAL.test(word))
  )
    found.add("run.download", `starts ${text}`, process);
  if (["env", "printenv"].includes(name) && words.length === 1)
    found.add("run.environment", `starts ${name}, which prints all variables`, process);
  if (name === "crontab" && words[1] === "-l") return;
  const row = PROGRAMS.find(([names]) => names.has(name));
  if (row !== undefined) found.add(row[1], `starts ${text}`, process);
}

/** Whether a downloader may reach another machine. */
function fetches(name: string, words: readonly string[]): boolean {
  const operands = words.slice(1).filter((word) => !word.startsWith("-"));
  if (name === "rsync") return operands.some((word) => /^(?:rsync|ssh):\/\/|^[\w.@-]+:/.test(word));
  return operands.length === 0 || !operands.some((word) => LOCAL.test(word));
}

const TEXT_BEARERS = /^(?:(?:ba|z|da|k|a)?sh|python[\d.]*|node|nodejs|perl|ruby|php|make|env|xargs|npm)$/;

function judgeTexts(process: SeenProcess, found: ActFindings): void {
  if (!TEXT_BEARERS.test(programOf(process))) return;
  const text = process.words.join(" ");
  for (const [form, rule, words] of TEXTS)
    if (form.test(text)) found.add(rule, `${words}: ${text.slice(0, 200)}`, process);
}

/**
 * Looks for two programs of one pipe: one that decodes or fetches, and a shell or interpreter that reads the result.
 */
function judgePipes(processes: readonly SeenProcess[], found: ActFindings): void {
  for (const [parent, children] of Map.groupBy(processes, ({ parent }) => parent)) {
    const reader = children.find(
      ({ words }) =>
        /^(?:(?:ba|z|da|k)?sh|python[\d.]*|node|perl)$/.test(lastName(words[0] ?? "")) &&
        (words.length === 1 || (words.length === 2 && ["-", "-s"].includes(words[1] ?? ""))),
    );
    if (reader === undefined || parent <= 1) continue;
    const source = children.find(({ words }) => {
      const name = lastName(words[0] ?? "");
      return (
        (name === "base64" && words.some((word) => /^(?:-d|-D|--decode|-di)$/.test(word))) ||
        ["curl", "wget", "xxd", "openssl"].includes(name)
      );
    });
    if (source === undefined) continue;
    const fetched = ["curl", "wget"].includes(programOf(source));
    found.add(
      fetched ? "run.download-run" : "run.hidden-code",
      `pipes ${source.words.slice(0, 4).join(" ")} into ${programOf(reader)}`,
      reader,
    );
  }
}

const LONG_S = 20;
const UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };

function judgeWaits(process: SeenProcess, name: string, what: VetStep["what"], found: ActFindings): void {
  if (name !== "sleep" || what === "test") return;
  const [, count = "0", unit = "s"] = /^(\d+(?:\.\d+)?)([smhd]?)$/.exec(process.words[1] ?? "") ?? [];
  const seconds =
    process.words[1] === "infinity" ? Infinity : Number(count) * (UNITS[unit === "" ? "s" : unit] ?? 1);
  if (seconds >= LONG_S) found.add("run.waits", `sleeps ${process.words[1]}`, process);
}

const MANAGERS: ReadonlySet<string> = set(
  "npm npm-cli npx npx-cli yarn pnpm pip pip3 cargo gem bundle composer bun",
);
const ADD_COMMANDS = /^(?:i|add|install|exec|x|dlx|create|init|global|require)$/;

/** Looks for package managers that scripts of the repository start to fetch further packages. */
function judgeFetches(process: SeenProcess, name: string, chains: SeenChains, found: ActFindings): void {
  const request = packagesRequestedBy(process.words, name);
  if (request === undefined || request.packages.every((word) => /^[./~]|^file:/.test(word))) return;
  const { pid, at, parent } = process;
  // A manager that the step itself starts is the step.
  if (parent > 1 && chains.at(parent, at) !== undefined && chains.of(pid, at).length > 2)
    found.add("run.fetches-packages", `starts ${request.text}`, process);
}

interface PackageRequest {
  readonly text: string;
  readonly packages: readonly string[];
}

function packagesRequestedBy(words: readonly string[], name: string): PackageRequest | undefined {
  if (name.startsWith("python"))
    return words[1] === "-m" && words[2] === "pip" && words[3] === "install"
      ? packageRequest("pip install", words.slice(4))
      : undefined;
  const script = lastName(words[1] ?? "").replace(/\.(?:c|m)?js$/, "");
  const manager = name === "node" ? script : name;
  if (!MANAGERS.has(manager)) return undefined;
  const args = words.slice(name === "node" ? 2 : 1);
  const [first = "", ...others] = args.filter((word) => !word.startsWith("-"));
  if (manager.startsWith("npx")) return packageRequest(manager, args);
  return ADD_COMMANDS.test(first) ? { ...packageRequest(manager, args), packages: others } : undefined;
}

const packageRequest = (manager: string, args: readonly string[]): PackageRequest => ({
  text: [manager, ...args].slice(0, 8).join(" "),
  packages: args.filter((word) => !word.startsWith("-")),
});

const HOSTILE_CALLS = set(
  "mount umount umount2 pivot_root bpf init_module finit_module delete_module kexec_load kexec_file_load setns open_by_handle_at process_vm_writev process_vm_readv ptrace swapon swapoff reboot settimeofday clock_settime sethostname setdomainname chroot iopl ioperm move_mount fsopen fsmount open_tree mknod syslog",
);

export function judgeCall(act: CallAct, found: ActFindings): void {
  const name = act.name.replace(/^sys_/, "");
  const text = `calls ${act.name}${act.detail === "" ? "" : ` (${act.detail})`}`;
  if (/kill|signal/.test(name)) found.add("run.kill", text, act);
  else if (HOSTILE_CALLS.has(name)) found.add("run.call", text, act);
  else found.add("run.odd-call", text, act);
}

const MADE_TO_RUN = /^\/(?:tmp|var\/tmp|dev\/shm|home\/|root\/)/;
const BUILDERS = set(
  "go cargo rustc gcc cc c++ g++ clang ld configure cmake node-gyp gyp pip pip3 meson ninja java mvn gradle dotnet ghc zig",
);

/** Looks for programs that the command itself put into a temporary or home folder before it ran them. */
export function judgeDropped(
  acts: readonly PathAct[],
  processes: readonly SeenProcess[],
  { what }: Pick<VetStep, "what">,
  judging: { readonly chains: SeenChains; readonly found: ActFindings; readonly workspace: string },
): void {
  if (what === "test" || what === "given") return;
  const { chains, found, workspace } = judging;
  const made = new Set(
    acts
      .filter(({ kind, path }) => (kind === "make" || kind === "write") && MADE_TO_RUN.test(path))
      .map(({ path }) => path),
  );
  const ran = [
    ...acts.filter(({ kind }) => kind === "run"),
    ...processes.flatMap(({ words, pid, at }) => words.slice(0, 2).map((path) => ({ path, pid, at }))),
  ];
  for (const { path, pid, at } of ran)
    if (made.has(path) && !path.startsWith(`${workspace}/`) && !chains.isUnder(pid, at, BUILDERS))
      found.add("run.dropped", `runs ${path}, which it had created`, { pid, at }, path);
}
