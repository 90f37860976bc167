import type { Arg, Found, Model, Use } from "../model.ts";
import { copied, hostPart } from "./copies.ts";
import { networkTo, part, reachesAnyway, valuesOf } from "./parts.ts";

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
