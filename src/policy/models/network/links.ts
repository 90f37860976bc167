import type { Found, Model, Use } from "../model.ts";
import { named, remote } from "./parts.ts";

/** Interfaces, routes and sockets of this machine. Showing them is asked for as well: they tell who it talks to. */
const SHOWS = remote("--version -V --help -h -v");

/** `ip netns exec NAME command` runs in a world of its own, which takes rights that nothing here needs. */
function namespaces(use: Use): readonly Found[] {
  const [verb, , ...command] = use.args;
  return verb?.value === "exec"
    ? [{ kind: "privilege", what: `${use.program} exec` }, ...use.command(command)]
    : [{ kind: "network", hosts: [] }];
}

const OBJECTS = `address addr a link l route r rule ru neighbour neighbor neigh n tunnel tun tuntap maddress mroute
  monitor netconf token tcp_metrics xfrm macsec nexthop stats sr ila l2tp fou mptcp ntable addrlabel ioam help`;

const IP: Model = {
  options: `-4 -6 -0 -B -M -d -s -j -p -o -r -t -ts -a -h -br -c -color -brief -details -stats -statistics -json -pretty
    -oneline -resolve -timestamp -family= -f: -n: -netns: -l: -batch:loads -b:loads -rc: -force -iec -human -N -Numeric`,
  singleDash: true,
  operands: "",
  tells: "-V -Version --version help --help",
  commands: {
    ...named(OBJECTS, remote("help")),
    netns: { reads: namespaces },
    vrf: { reads: namespaces },
  },
};

/** Rules of the kernel for what passes. */
const KERNEL = `iptables ip6tables iptables-restore iptables-save ip6tables-restore ip6tables-save ebtables arptables nft ufw
  firewall-cmd ipset ipvsadm tc brctl bridge ifup ifdown ifconfig iwconfig iw rfkill route arp ethtool nmcli networkctl
  wpa_supplicant wpa_cli dhclient dhcpcd netplan wg wg-quick openvpn openconnect vpnc strongswan ipsec tailscale
  tailscaled zerotier-cli tinc nebula`;

export const LINKS: Readonly<Record<string, Model>> = {
  ip: IP,
  ...named("ss netstat nstat ifstat iftop nethogs bmon vnstat conntrack", SHOWS),
  ...named(KERNEL, remote("--version -V --help -h version")),
};
