import type { Found, Model, Use } from "../model.ts";
import { named, remote } from "./parts.ts";

/** Who this machine talks to, and how: showing it is asked for as well. */
const SHOWS =
  "nstat ifstat iftop nethogs bmon vnstat conntrack ethtool iw iwconfig arp ipset iptables-save ip6tables-save";

/** What changes how this machine is connected. */
const CONNECTS = `ebtables arptables ipvsadm brctl bridge ifup ifdown rfkill nmcli networkctl wpa_supplicant wpa_cli dhclient dhcpcd
  netplan wg wg-quick openvpn openconnect vpnc ipsec tailscale tailscaled zerotier-cli nebula`;

export const LINKS: Readonly<Record<string, Model>> = {
  ...named("ss netstat", { reads: connections, tells: "--version -V --help -h" }),
  ...named(SHOWS, remote()),
  ...named(CONNECTS, remote()),
};

const LISTS =
  /^(?:-[ltunpaeiomsHOM46x]+|--(?:listening|tcp|udp|numeric|processes|programs|all|unix|summary|no-header|wide|numeric-ports))$/;

/** They tell of their own machine; with names, they would ask for them. */
function connections({ args }: Use): readonly Found[] {
  const own = args.every(({ kind, value }) => kind === "literal" && LISTS.test(value));
  const numbers = args.some(({ value }) => /^-[a-zA-Z]*n|^--numeric/.test(value));
  return [{ kind: "network", hosts: [], ...(own && numbers ? { inside: true } : {}) }];
}
