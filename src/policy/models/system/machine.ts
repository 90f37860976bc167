import type { Found, Model, Use } from "../model.ts";
import { always, outside, unless } from "../plain.ts";

/** Programs that act on disks, power and the kernel, whatever they are told. */
const SYSTEM =
  `shutdown reboot halt poweroff init telinit kexec pivot_root mkfs mke2fs mkdosfs mkswap mkfs.ext2 mkfs.ext3 mkfs.ext4
  mkfs.xfs mkfs.btrfs mkfs.vfat mkfs.fat mkfs.msdos mkfs.ntfs mkfs.exfat mkfs.f2fs mkfs.minix mkfs.bfs mkfs.cramfs fdisk sfdisk
  cfdisk gdisk sgdisk parted partprobe partx wipefs blkdiscard badblocks fsck e2fsck xfs_repair swapoff losetup cryptsetup
  dmsetup mdadm umount hdparm nvme sdparm debugfs tune2fs resize2fs e2label lvcreate lvremove lvresize lvextend lvreduce
  vgcreate vgremove vgreduce vgextend pvcreate pvremove zpool zfs btrfs insmod rmmod modprobe depmod setenforce auditctl hwclock
  iptables ip6tables iptables-restore ip6tables-restore nft ufw firewall-cmd tc grub-install update-grub flashrom fwupdmgr eject
  setfont loadkeys efibootmgr rtcwake fstrim fsfreeze`.split(/\s+/);
/** Programs that change who may do what. */
const ACCOUNTS =
  `useradd userdel usermod adduser deluser groupadd groupdel groupmod addgroup delgroup gpasswd newusers passwd
  chpasswd chgpasswd chage chsh chfn visudo vipw vigr pwconv grpconv newgrp`.split(/\s+/);

const named = (names: readonly string[], model: Model): Readonly<Record<string, Model>> =>
  Object.fromEntries(names.map((name) => [name, model]));

/** Programs that act on the machine as a whole. */
export const MACHINE: Readonly<Record<string, Model>> = {
  ...named(SYSTEM, always("system")),
  ...named(ACCOUNTS, always("privilege")),
  mount: unless("-l -v --help --version -V", "system"),
  swapon: unless("-s --show --summary --help --version -V", "system"),
  ldconfig: unless("-p --print-cache -V --version --help", "system"),
  lsmod: unless("", "system"),
  sysctl: {
    operands: "data*",
    options:
      "-abdeNnqrX -A -w!system -p?!system -f?!system --all --deprecated --names --values --write!system --load=?!system --system!system --pattern=",
    also: (use) => sysctlEffects(use),
  },
  dmesg: {
    options: `-deHkLPrTtuxSw -F:read -f: -l: -s: -C!system -c!system -D!system -E!system -n:!system --clear!system
      --read-clear!system --console-off!system --console-on!system --console-level=!system --color=? --ctime --decode --facility=
      --file=read --follow --human --json --kernel --level= --nopager --noescape --notime --raw --reltime --since= --until=
      --show-delta --time-format= --userspace`,
    abbreviates: true,
    also: () => [{ kind: "read", path: "/dev/kmsg" }],
  },
  ip: { reads: (use) => ipEffects(use), tells: "-V -Version help" },
  ifconfig: { reads: (use) => ifconfigEffects(use) },
  route: unless("-n -e -ee -v -4 -6 --numeric", "system"),
  timedatectl: unless("status show timesync-status list-timezones --no-pager -a --all", "system"),
  hostnamectl: unless("status --no-pager --static --transient --pretty", "system"),
  localectl: unless("status list-locales list-keymaps --no-pager", "system"),
  loginctl: unless("list-sessions list-users list-seats --no-pager --no-legend", "system"),
  "update-alternatives": { reads: (use) => alternativesEffects(use) },
};

const IP_OPTION =
  /^-(?:4|6|br|brief|c|color(?:=\w+)?|j|json|p|pretty|o|oneline|s|stats|d|details|h|human|N|Numeric)$/;
const IP_OBJECT =
  /^(?:a|ad|add|addr|address|l|li|link|r|ro|route|ru|rule|n|ne|nei|neigh|neighbor|neighbour|maddr|maddress)$/;
const IP_VERB = /^(?:s|sh|sho|show|l|li|lis|list|ls|lst|g|ge|get)$/;

/** `ip addr show`: any other verb changes the network of the machine, or runs a command in another one. */
function ipEffects(use: Use): readonly Found[] {
  const [object, verb] = use.args.filter(({ value }) => !IP_OPTION.test(value));
  if (object === undefined) return [];
  const vague = [object, verb].find((arg) => arg !== undefined && arg.kind !== "literal");
  if (vague !== undefined) return [use.doubt("word.dynamic", vague)];
  const shows = IP_OBJECT.test(object.value) && (verb === undefined || IP_VERB.test(verb.value));
  return [shows ? { kind: "network", hosts: [] } : { kind: "system", what: use.program }];
}

const INTERFACE = /^-a$|^\w+$/;

const ifconfigEffects = (use: Use): readonly Found[] =>
  outside(use, (word) => use.args.length <= 1 && INTERFACE.test(word), "system");

const ALTERNATIVES = new Set(["--list", "--display", "--query", "--get-selections"]);

const alternativesEffects = (use: Use): readonly Found[] =>
  outside(use, (word) => use.args.length <= 2 && (ALTERNATIVES.has(word) || !word.startsWith("-")), "system");

const sysctlEffects = (use: Use): readonly Found[] => [
  ...use.operands
    .filter(({ kind, value }) => kind === "literal" && value.includes("="))
    .map(({ span }): Found => ({ kind: "system", what: use.program, span })),
  ...use.operands.filter(({ kind }) => kind !== "literal").map((arg) => use.doubt("word.dynamic", arg)),
  { kind: "read", path: "/proc/sys" },
];
