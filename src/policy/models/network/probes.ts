import type { Found, Model, Use } from "../model.ts";
import { named, networkTo, part, reachesAnyway, reading, remote } from "./parts.ts";

const asks = (options: string, tells: string): Model => ({
  options,
  operands: "host*",
  tells,
  also: reachesAnyway,
});

/** Names and addresses are asked of a server: what stands in them leaves the machine. */
const NAMES: Model = { reads: lookups, tells: "-v -h --version --help" };

/** `@server name type +option …`: the hosts are the server and whatever has a dot. */
function lookups(use: Use): readonly Found[] {
  const found = use.args.flatMap((arg, index): readonly Found[] => {
    const before = use.args[index - 1]?.value;
    if (before === "-f" || before === "-k") return [reading(arg, use)];
    if (/^-[fk]./.test(arg.value)) return [reading(part(arg, arg.value.slice(2)), use)];
    return /^[^-+].*[.:]/.test(arg.value) ? [networkTo(arg)] : [];
  });
  return found.some(({ kind }) => kind === "network") ? found : [{ kind: "network", hosts: [] }, ...found];
}

const PING = asks(
  "-aAbBCdDfHhLlnOqrRUv346 -c: -e: -F: -i: -I: -M: -m: -N: -p: -Q: -s: -S: -t: -T: -W: -w: --count= --interval= --timeout=",
  "-V --version -h --help",
);
const TRACE = asks(
  "-46dFITUnrAebp -f: -g:host -i: -m: -N: -q: -s: -t: -w: -z: -M: -l: --mtu --back --tcp --icmp --udp --port= --max-hops=",
  "-V --version --help",
);

/** What leaves or reaches the machine, seen or made up packet by packet. */
const PACKETS = `zenmap masscan zmap rustscan arping hping3 hping fping nping scapy ettercap bettercap dsniff nikto
  sqlmap gobuster ffuf dirb wfuzz hydra amass subfinder iperf iperf3 netperf speedtest speedtest-cli smbclient smbmap
  rpcclient snmpwalk snmpget ldapsearch ldapmodify showmount onesixtyone avahi-browse avahi-resolve upnpc nbtscan
  ntpdate ntpq chronyd sntp rdate wakeonlan etherwake whois finger rwhois rlogin rsh rexec rcp xfreerdp rdesktop
  vncviewer irssi weechat`;

const CAPTURES: Model = {
  options: `-AbdDefhHIJKlLnNOpqStuUvxX# -B: -c: -C: -E: -F:read -G: -i: -j: -m:loads -M: -Q: -r:read -s: -T: -V:read
    -w:write -W: -y: -z:loads -Z: -g -Y: -R: -a: -P`,
  operands: "data*",
  fixed: ["network"],
  tells: "--version --help -h",
};

const CAPTURES_FROM_MANY = remote("--version -v --help -h");

/** Tables of the system by name; those of hosts are asked of a server. */
function entries(use: Use): readonly Found[] {
  const [table, ...rest] = use.operands;
  if (table === undefined) return [];
  if (/^(?:a?hosts(?:v[46])?|networks|netgroup|ethers)$/.test(table.value))
    return rest.length === 0 ? [reading(part(table, "/etc/hosts"), use)] : rest.map(networkTo);
  return /^(?:passwd|group|shadow|gshadow|services|protocols|rpc|aliases|initgroups)$/.test(table.value)
    ? [reading(part(table, `/etc/${table.value}`), use)]
    : [use.doubt("operand.unknown", table)];
}

export const PROBES: Readonly<Record<string, Model>> = {
  ...named("dig kdig drill delv dog doggo", NAMES),
  nslookup: { reads: lookups, tells: "-version --version" },
  host: { reads: lookups, tells: "-V" },
  resolvectl: remote(),
  "systemd-resolve": remote(),
  ping: PING,
  ping4: PING,
  ping6: PING,
  traceroute: TRACE,
  traceroute6: TRACE,
  tracepath: TRACE,
  tracepath6: TRACE,
  mtr: remote("--version -v --help -h"),
  nmap: remote("--version -V --help -h"),
  ...named(PACKETS, remote()),
  tcpdump: CAPTURES,
  tshark: CAPTURES_FROM_MANY,
  wireshark: CAPTURES_FROM_MANY,
  dumpcap: CAPTURES_FROM_MANY,
  ngrep: remote(),
  getent: { options: "-i --no-idn", operands: "data*", also: entries },
};
