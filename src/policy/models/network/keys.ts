import type { Found, Model, Use } from "../model.ts";
import { given, reading, valuesOf, writing } from "./parts.ts";

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
