import type { Model } from "../model.ts";
import { named, remote } from "./parts.ts";

/** Who this machine talks to, and how: showing it is asked for as well. */
const SHOWS =
  "nstat ifstat iftop nethogs bmon vnstat conntrack ethtool iw iwconfig arp ipset iptables-save ip6tables-save";

/** What changes how this machine is connected. */
const CONNECTS = `ebtables arptables ipvsadm brctl bridge ifup ifdown rfkill nmcli networkctl wpa_supplicant wpa_cli dhclient dhcpcd
  netplan wg wg-quick openvpn openconnect vpnc ipsec tailscale tailscaled zerotier-cli nebula`;

export const LINKS: Readonly<Record<string, Model>> = {
  ...named("ss netstat", remote("--version -V --help -h")),
  ...named(SHOWS, remote()),
  ...named(CONNECTS, remote()),
};
