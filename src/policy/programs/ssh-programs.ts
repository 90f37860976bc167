import { given, networkTo, part, reachesAnyway, reading, valuesOf, writing } from "./network-arguments.ts";
import type { Arg, Found, Model, Use } from "./program-model.ts";

/** Settings that run a text on this side. */
const RUNNING = new Set(["proxycommand", "localcommand", "knownhostscommand"]);
/** Settings that only say how the connection is made. */
const TAME = new Set(
  `batchmode connecttimeout connectionattempts stricthostkeychecking loglevel port user hostname hostkeyalias
  serveraliveinterval serveralivecountmax compression ciphers macs kexalgorithms hostkeyalgorithms addressfamily
  passwordauthentication pubkeyauthentication preferredauthentications identitiesonly forwardagent forwardx11
  requesttty numberofpasswordprompts checkhostip visualhostkey tcpkeepalive exitonforwardfailure verifyhostkeydns
  hashknownhosts updatehostkeys pubkeyacceptedkeytypes pubkeyacceptedalgorithms`.split(/\s+/),
);

/** `-o Name=value` or `-o 'Name value'`. */
function setting(value: Arg, use: Use): readonly Found[] {
  const [, name = "", rest = ""] = /^\s*(\w+)\s*[=\s]\s*([^]*)$/.exec(value.value) ?? [];
  const key = name.toLowerCase();
  if (RUNNING.has(key)) return use.shell(part(value, rest));
  if (key === "proxyjump") return [networkTo(part(value, rest))];
  return value.kind === "literal" && TAME.has(key) ? [] : [use.doubt("option.loads-code", value)];
}

const settings = (use: Use): readonly Found[] => valuesOf(use, "-o").flatMap((value) => setting(value, use));

/** Of what follows the host, options are still its own; the rest is for the other machine. */
function behindHost(use: Use): readonly Found[] {
  const [, next] = use.operands;
  return next?.value.startsWith("-") === true && next.value !== "--"
    ? [use.doubt("option.unknown", next)]
    : [];
}

const OPTIONS = `-46AaCfGgKkNnqsTtVvXxYy -B: -b: -c: -D: -e: -L: -l: -m: -O: -P: -p: -Q: -R: -w: -o: -J:host -W:host
  -E:write -S:write -F:loads -I:loads -i:read`;

const SSH: Model = {
  options: `${OPTIONS} -M`,
  operands: "host data*",
  strict: true,
  tells: "-V",
  also: (use) => [...reachesAnyway(use), ...settings(use), ...behindHost(use)],
};

/** With a path on this side only, it is a copy. */
const copies = (use: Use): readonly Found[] => [...settings(use), ...copied(use, hostPart)];

const BATCH: Model = {
  options: "-46AaCfNpqrv -B: -c: -l: -P: -R: -o: -X: -J:host -i:read -b:loads -F:loads -S:loads -D:loads -s:",
  operands: "host data*",
  tells: "",
  also: (use) => [...reachesAnyway(use), ...settings(use)],
};

const reached = (arg: Arg, host: string): readonly Found[] =>
  host === "" ? [] : [networkTo(part(arg, host))];

export const SSH_CLIENTS: Readonly<Record<string, Model>> = {
  ssh: SSH,
  slogin: SSH,
  autossh: { ...SSH, options: `${OPTIONS} -M:` },
  dbclient: SSH,
  scp: {
    options: "-346ABCOpqRrsTv -c: -l: -P: -o: -X: -J:host -i:read -F:loads -S:loads -D:loads",
    operands: "data*",
    tells: "",
    also: copies,
  },
  pscp: { operands: "data*", also: copies },
  sftp: BATCH,
  mosh: {
    options: `-46an -p: --predict= --family= --port= --bind-server= --no-init --local --experimental-remote-ip= --ssh=shell
      --server= --client=loads --no-ssh-pty`,
    operands: "host data*",
    strict: true,
    also: (use) => [...reachesAnyway(use), ...behindHost(use)],
  },
  sshpass: {
    options: "-ev -p: -d: -P: -f:read",
    operands: "command*",
    strict: true,
    tells: "-V -h",
  },
  sshfs: { options: "-CdfsvVh -p: -o: -F:loads", operands: "host target", fixed: ["ask"] },
  sshuttle: {
    options: "-vDN -r:host -x: -l: -e:shell --dns --daemon",
    operands: "data*",
    fixed: ["network", "ask"],
  },
  "ssh-keyscan": {
    options: "-46cDHqv -O: -p: -T: -t: -f:read",
    operands: "host*",
    tells: "",
    also: reachesAnyway,
  },
  "ssh-copy-id": {
    options: "-fnsx -p: -t: -i?read -o: -F:loads",
    operands: "host",
    tells: "-h",
    also: (use) => [...reachesAnyway(use), ...settings(use)],
  },
};

/** With one of these, and with none but these, it only shows what is in a file. */
const SHOWING = ["-l", "-B", "-y", "-F", "-L", "-e"];
const WITH_THEM = new Set([...SHOWING, "-f", "-E", "-m", "-P", "-q", "-v"]);

function keyFile(use: Use): readonly Found[] {
  const shows = given(use, ...SHOWING) && use.options.every(({ name }) => WITH_THEM.has(name));
  const files = valuesOf(use, "-f");
  if (files.length > 0) return files.map((file) => (shows ? reading(file, use) : writing(file, use)));
  // Keys of a device, or of the machine.
  if (given(use, "-D", "-A", "-k", "-Q")) return [];
  const name = given(use, "-F", "-R", "-H") ? "known_hosts" : "id_ed25519";
  return [{ kind: shows ? "read" : "write", path: `${use.home}/.ssh/${name}` }];
}

const rings = ({ home }: Use): Found => ({ kind: "read", path: `${home}/.gnupg` });

/** Shows or changes what an agent holds. */
const AGENT = "process";

const GPG: Model = {
  options: `-abcdeksvqt -u: -r: -R: -K -h -n -z: --armor --ascii --batch --yes --no --no-tty --quiet --verbose --dry-run
    --list-keys --list-public-keys --list-secret-keys --list-sigs --list-signatures --check-sigs --fingerprint
    --list-packets --with-colons --with-fingerprint --keyid-format= --verify --verify-files --decrypt --encrypt
    --symmetric --sign --clear-sign --clearsign --detach-sign --store --show-keys --print-md --print-mds --export
    --export-secret-keys --export-secret-subkeys --export-ownertrust --export-ssh-key --import --import-ownertrust
    --fast-import --dearmor --enarmor --gen-random --gen-key --generate-key --full-generate-key --full-gen-key
    --quick-generate-key --quick-gen-key --edit-key --delete-keys --delete-secret-keys --delete-secret-and-public-keys
    --sign-key --lsign-key --gen-revoke --passwd --card-status --card-edit --update-trustdb --check-trustdb
    --always-trust --trust-model= --recipient= --local-user= --default-key= --cipher-algo= --digest-algo=
    --compress-algo= --passphrase= --passphrase-fd= --pinentry-mode= --status-fd= --logger-fd= --no-default-keyring
    --keyring=read --secret-keyring=read --passphrase-file=read --output=write -o:write --log-file=write
    --status-file=write --homedir=loads --options=loads --agent-program=loads --dirmngr-program=loads
    --photo-viewer=loads --exec-path=loads --recv-keys!network --receive-keys!network --send-keys!network
    --search-keys!network --refresh-keys!network --fetch-keys!network --locate-keys!network
    --locate-external-keys!network --auto-key-retrieve!network --auto-key-locate=host --keyserver=host`,
  operands: "data*",
  fixed: ["process"],
  also: (use) =>
    given(
      use,
      "--recipient",
      "-r",
      "--list-keys",
      "--list-secret-keys",
      "--recv-keys",
      "--export",
      "--edit-key",
    )
      ? [rings(use)]
      : use.operands.map((file) => reading(file, use)),
};

const PASSWORDS: Model = {
  operands: "data*",
  reads: ({ program }) => [{ kind: "process", what: program }],
};

export const KEYS: Readonly<Record<string, Model>> = {
  "ssh-keygen": {
    options: `-lvqyBeioLpchHUu -a: -b: -C: -E: -F: -I: -m: -N: -n: -O: -P: -r: -R: -t: -V: -Y: -Z: -z: -f: -A!ask -k!ask
      -Q!ask -M:loads -D:loads -s:loads -w:loads`,
    operands: "data*",
    tells: "",
    also: keyFile,
  },
  "ssh-add": {
    options: "-cDdKkLlqvXx -E: -H: -h: -S:loads -s:loads -e: -T:read -t:",
    operands: "read*",
    fixed: [AGENT],
    tells: "",
  },
  "ssh-agent": {
    options: "-ckDdsT -a:write -E: -O: -P:loads -t:",
    operands: "command*",
    strict: true,
    fixed: [AGENT],
    tells: "",
  },
  gpg: GPG,
  gpg2: GPG,
  gpgv: {
    options: "-qv --keyring=read --status-fd= --logger-fd= --ignore-time-conflict",
    operands: "read*",
    also: (use) => [rings(use)],
  },
  gpgconf: PASSWORDS,
  "gpg-agent": PASSWORDS,
  "gpg-connect-agent": PASSWORDS,
  pass: PASSWORDS,
  gopass: PASSWORDS,
  keyctl: PASSWORDS,
  "secret-tool": PASSWORDS,
  op: PASSWORDS,
  bw: PASSWORDS,
  age: {
    options:
      "-dea -r: -R:read -i:read -o:write -p --decrypt --encrypt --armor --recipient= --passphrase --identity=read --recipients-file=read --output=write",
    operands: "read",
    fixed: ["ask"],
  },
  sops: PASSWORDS,
};

const FLAGS = `-avqcrRbudlLkKHpEAXogDtOJUNSnxWzCPhi468sFymI0 --archive --verbose --quiet --no-motd --checksum --recursive
  --relative --no-relative --no-implied-dirs --backup --update --inplace --append --append-verify --dirs --old-dirs
  --mkpath --links --copy-links --copy-unsafe-links --safe-links --munge-links --copy-dirlinks --keep-dirlinks
  --hard-links --perms --no-perms --executability --acls --xattrs --owner --no-owner --group --no-group --devices
  --copy-devices --specials --times --no-times --atimes --open-noatime --crtimes --omit-dir-times --omit-link-times
  --super --fake-super --sparse --preallocate --dry-run --whole-file --no-whole-file --one-file-system --existing
  --ignore-existing --remove-source-files --del --delete --delete-before --delete-during --delete-delay --delete-after
  --delete-excluded --delete-missing-args --ignore-missing-args --ignore-errors --force --partial --delay-updates
  --prune-empty-dirs --numeric-ids --size-only --ignore-times --fuzzy --compress --cvs-exclude --from0 --no-dirs
  --secluded-args --protect-args --old-args --trust-sender --blocking-io --stats --8-bit-output --human-readable
  --no-human-readable --progress --itemize-changes --list-only --fsync --ipv4 --ipv6 --no-recursive --no-links
  --no-compress --no-inc-recursive --info= --debug= --stderr= --outbuf=`;

const VALUES = `-B: -M: -f: -T:target -@: --suffix= --chmod= --block-size= --max-delete= --max-size= --min-size= --max-alloc=
  --timeout= --contimeout= --modify-window= --compress-choice= --zc= --compress-level= --zl= --skip-compress= --filter=
  --exclude= --include= --address= --port= --sockopts= --bwlimit= --stop-after= --stop-at= --protocol= --iconv=
  --checksum-choice= --cc= --checksum-seed= --out-format= --log-file-format= --usermap= --groupmap= --chown= --copy-as=
  --remote-option=`;

const FILES = `--exclude-from=read --include-from=read --files-from=read --password-file=read --compare-dest=read
  --copy-dest=read --link-dest=read --read-batch=read --backup-dir=target --partial-dir=target --temp-dir=target
  --log-file=write --write-batch=write --only-write-batch=write
  -e:shell --rsh=shell --rsync-path=loads --early-input=read --daemon!process --config=loads --dparam=loads
  --no-detach!process`;

const DELETING = [
  "--del",
  "--delete",
  "--delete-before",
  "--delete-during",
  "--delete-delay",
  "--delete-after",
  "--delete-excluded",
  "--delete-missing-args",
];

/** Reads on both sides and changes nothing. */
const isDry = (use: Use): boolean => given(use, "-n", "--dry-run", "--list-only") || use.operands.length < 2;

function synchronised(use: Use): readonly Found[] {
  if (isDry(use))
    return copied(use, hostPart).map((found) =>
      found.kind === "write" ? { ...found, kind: "read" } : found,
    );
  const moved = given(use, "--remove-source-files") ? use.operands.slice(0, -1) : [];
  return [
    ...copied(use, hostPart),
    ...moved.filter((arg) => hostPart(arg) === null).map((arg) => writing(arg, use)),
    ...(given(use, ...DELETING) ? emptied(use, hostPart) : []),
  ];
}

/** Rules of a filter may stand in files: `merge FILE`, `. FILE`. */
const filterFiles = (use: Use): readonly Found[] =>
  valuesOf(use, "-f", "--filter").flatMap((rule) => {
    const file = /^(?:merge|\.)[^\s_]*[\s_]+([^]+)$/.exec(rule.value)?.[1];
    return file === undefined ? [] : [reading(part(rule, file), use)];
  });

/** The other side would obey these; nothing on this one does. */
const remoteOptions = (use: Use): readonly Found[] =>
  valuesOf(use, "-M", "--remote-option").map((arg) => use.doubt("option.unknown", arg));

export const RSYNC: Readonly<Record<string, Model>> = {
  rsync: {
    options: `${FLAGS} ${VALUES} ${FILES}`,
    operands: "data*",
    tells: "--version -V --help",
    also: (use) => [...synchronised(use), ...filterFiles(use), ...remoteOptions(use)],
  },
};

/** Where one end of a copy lies on another machine: what stands for that machine, empty where that tells no host. Null: on this one. */
type Elsewhere = (arg: Arg) => string | null;

/** `host:path`, `host::module`, `scheme://host/path`: a colon before the first slash. */
function hostPart({ value }: Arg): string | null {
  if (/^[a-z][a-z0-9+]*:\/\//i.test(value)) return value;
  const [host] = /^(?:[^/@:]*@)?(?:\[[^\]/]*\]|[^/:[]+)(?=:)/.exec(value) ?? [];
  return host ?? null;
}

/** `bucket://…`, `remote:path`, `pod:path`: a name of the program's own, which tells no host. */
export const named = ({ value }: Arg): string | null =>
  /^(?:[a-z0-9]+:\/\/|[^/:]+:)/i.test(value) ? "" : null;

/** All but the last operand are read, the last one is written; hosts are the network. */
export function copied(use: Use, elsewhere: Elsewhere): readonly Found[] {
  const sources = use.operands.length > 1 ? use.operands.slice(0, -1) : use.operands;
  const target = use.operands.length > 1 ? use.operands.at(-1) : undefined;
  const ends = sources.flatMap((arg): readonly Found[] => {
    const host = elsewhere(arg);
    return host === null ? [reading(arg, use)] : reached(arg, host);
  });
  if (target === undefined) return ends;
  const host = elsewhere(target);
  if (host !== null) return [...ends, ...reached(target, host)];
  return [...ends, writing(target, use), ...into(target, sources, use)];
}

/** In a folder the copies get the names that they had. */
function into(target: Arg, sources: readonly Arg[], use: Use): readonly Found[] {
  if (sources.length < 2 && !/(?:^|\/)\.{0,2}$/.test(target.value)) return [];
  return sources.flatMap((source) => {
    const name = source.value.slice(
      Math.max(source.value.lastIndexOf("/"), source.value.lastIndexOf(":")) + 1,
    );
    return /^\.{0,2}$/.test(name) ? [] : [writing(part(target, `${target.value}/${name}`), use)];
  });
}

/** The target loses what the source does not have. */
export function emptied(use: Use, elsewhere: Elsewhere): readonly Found[] {
  const target = use.operands.at(-1);
  if (target === undefined || use.operands.length < 2 || elsewhere(target) !== null) return [];
  return [{ kind: "delete", path: use.place(target), recursive: true, forced: true, span: target.span }];
}
