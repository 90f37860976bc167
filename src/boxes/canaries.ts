/**
 * Fake keys, credentials, sockets and addresses: a program that opens or contacts one was looking for the user's own.
 * Package managers, compilers and version control do not open them on their own: the files that these tools read at
 * each start (`.npmrc`, `.netrc`, `settings.xml`, `gradle.properties`, git's and cargo's own files) are not among them.
 */
import { randomBytes, randomUUID } from "node:crypto";
import type { Canary, Observed, SeenProcess } from "../core/behaviour.ts";
import { EXIT, HarnessError } from "../core/errors.ts";
import {
  type Box,
  BOX_HOME,
  type ExecRequest,
  type ExecResult,
  type Job,
  type OwnedBox,
} from "../core/ports.ts";

/** The contents open nothing and are random in each run, so that they can be recognized later. */
const letters = (length: number, alphabet = ALPHABET): string =>
  Array.from(randomBytes(length), (byte) => alphabet[byte % alphabet.length]).join("");
const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const CAPITALS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const HEX = "0123456789abcdef";

const lines = (text: string, width: number): string =>
  text.match(new RegExp(`.{1,${width}}`, "g"))?.join("\n") ?? "";

const pem = (label: string, bytes: Buffer, width = 64): string =>
  `-----BEGIN ${label}-----\n${lines(bytes.toString("base64"), width)}\n-----END ${label}-----\n`;

/** Prefixes the bytes with their length. */
function part(bytes: Buffer | string): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, Buffer.from(bytes)]);
}

/** In OpenSSH's own format, so that a close inspection finds a key; its two halves do not form a pair. */
function sshKey(): string {
  const half = randomBytes(32);
  const open = Buffer.concat([part("ssh-ed25519"), part(half)]);
  const check = randomBytes(4);
  const secret = part(Buffer.concat([randomBytes(32), half]));
  const closed = Buffer.concat([check, check, open, secret, part("me@laptop"), Buffer.from([1, 2, 3, 4])]);
  const head = [part("none"), part("none"), part(""), Buffer.from([0, 0, 0, 1])];
  const whole = [Buffer.from("openssh-key-v1\0"), ...head, part(open), part(closed)];
  return pem("OPENSSH PRIVATE KEY", Buffer.concat(whole), 70);
}

const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;

const token = (): string => `ghp_${letters(36)}`;
const webToken = (): string =>
  [
    { alg: "HS256", typ: "JWT" },
    { sub: randomUUID(), iat: 1_760_000_000 },
  ]
    .map((each) => Buffer.from(JSON.stringify(each)).toString("base64url"))
    .concat(randomBytes(32).toString("base64url"))
    .join(".");

const sqlite = (secret: string): string => `SQLite format 3\0\u0010\0\u0001\u0001\0@  \0\0\0\0${secret}\n`;

/** Canary files, by their path below the home folder. */
const FILES: Readonly<Record<string, readonly [name: string, content: () => string]>> = {
  ".ssh/id_ed25519": ["an SSH key", sshKey],
  ".ssh/id_rsa": ["an SSH key", () => pem("RSA PRIVATE KEY", randomBytes(1190))],
  ".aws/credentials": [
    "AWS credentials",
    () =>
      `[default]\naws_access_key_id = AKIA${letters(16, CAPITALS)}\naws_secret_access_key = ${letters(40)}\nregion = eu-central-1\n`,
  ],
  ".azure/msal_token_cache.json": [
    "Azure tokens",
    () => json({ AccessToken: { [randomUUID()]: { credential_type: "AccessToken", secret: webToken() } } }),
  ],
  ".config/gcloud/application_default_credentials.json": [
    "Google Cloud credentials",
    () =>
      json({
        type: "authorized_user",
        client_id: `${letters(12, "0123456789")}.apps.googleusercontent.com`,
        client_secret: `GOCSPX-${letters(28)}`,
        refresh_token: `1//${letters(100)}`,
      }),
  ],
  ".config/gh/hosts.yml": [
    "a GitHub token",
    () => `github.com:\n    user: me\n    oauth_token: ${token()}\n    git_protocol: https\n`,
  ],
  ".git-credentials": ["git credentials", () => `https://me:${token()}@github.com\n`],
  ".kube/config": [
    "Kubernetes credentials",
    () =>
      `apiVersion: v1\nkind: Config\nclusters:\n- name: prod\n  cluster:\n    server: https://k8s.internal.example:6443\nusers:\n- name: admin\n  user:\n    token: ${webToken()}\n`,
  ],
  ".docker/config.json": [
    "registry credentials",
    () =>
      json({
        auths: {
          "https://index.docker.io/v1/": {
            auth: Buffer.from(`me:dckr_pat_${letters(27)}`).toString("base64"),
          },
        },
      }),
  ],
  ".gnupg/private-keys-v1.d/5A1B7C3D9E0F24681357ACE02468BDF013579BDF.key": [
    "a GnuPG key",
    () =>
      `Key: (private-key (ecc (curve Ed25519)(flags eddsa)(q #40${letters(64, HEX)}#)(d #${letters(64, HEX)}#)))\n`,
  ],
  ".pypirc": [
    "a PyPI token",
    () => `[pypi]\nusername = __token__\npassword = pypi-AgEIcHlwaS5vcmc${letters(120)}\n`,
  ],
  ".env": [
    "a file of secrets",
    () =>
      `DATABASE_URL=postgres://app:${letters(24)}@db.internal.example/app\nSTRIPE_SECRET_KEY=sk_live_${letters(24)}\nOPENAI_API_KEY=sk-proj-${letters(48)}\n`,
  ],
  ".vault-token": ["a Vault token", () => `hvs.${letters(90)}\n`],
  ".terraform.d/credentials.tfrc.json": [
    "a Terraform token",
    () => json({ credentials: { "app.terraform.io": { token: `${letters(14)}.atlasv1.${letters(67)}` } } }),
  ],
  ".config/rclone/rclone.conf": [
    "cloud storage credentials",
    () =>
      `[backup]\ntype = s3\naccess_key_id = AKIA${letters(16, CAPITALS)}\nsecret_access_key = ${letters(40)}\n`,
  ],
  ".claude/.credentials.json": [
    "an agent's token",
    () =>
      json({ claudeAiOauth: { accessToken: `sk-ant-oat01-${letters(95)}`, expiresAt: 1_999_999_999_000 } }),
  ],
  ".codex/auth.json": ["an agent's token", () => json({ OPENAI_API_KEY: `sk-proj-${letters(48)}` })],
  ".zsh_history": [
    "a shell's history",
    () => `: 1760000000:0;export GITHUB_TOKEN=${token()}\n: 1760000042:0;ssh deploy@prod.internal.example\n`,
  ],
  ".config/google-chrome/Default/Login Data": ["a browser's passwords", () => sqlite(`v10${letters(60)}`)],
  ".config/google-chrome/Default/Cookies": ["a browser's cookies", () => sqlite(`v10${letters(60)}`)],
  ".config/google-chrome/Default/Local Extension Settings/nkbihfbeogaeaoehlefnkodbefgpgknn/000003.log": [
    "a wallet",
    () => json({ vault: { data: letters(120), iv: letters(22), salt: letters(43) } }),
  ],
  ".mozilla/firefox/k3vq81ax.default-release/logins.json": [
    "a browser's passwords",
    () => json({ logins: [{ hostname: "https://mail.example", encryptedPassword: letters(88) }] }),
  ],
  ".mozilla/firefox/k3vq81ax.default-release/cookies.sqlite": [
    "a browser's cookies",
    () => sqlite(letters(60)),
  ],
  ".local/share/keyrings/login.keyring": ["a keyring", () => `GnomeKeyring\n\r\0\n${letters(120)}\n`],
  ".config/Exodus/exodus.wallet/seed.seco": ["a wallet", () => `SECO\0\0\0\0${letters(120)}\n`],
  ".electrum/wallets/default_wallet": [
    "a wallet",
    () => json({ seed_version: 59, keystore: { seed: letters(80) } }),
  ],
  ".ethereum/keystore/UTC--2025-03-04T09-12-55.481Z--9b1f3c5d7e9a0b2c4d6e8f0a1b3c5d7e9f0a2b4c": [
    "a wallet",
    () =>
      json({
        version: 3,
        crypto: { cipher: "aes-128-ctr", ciphertext: letters(64, HEX), mac: letters(64, HEX) },
      }),
  ],
  ".bitcoin/wallet.dat": ["a wallet", () => `\0\0\0\0\u0001\0\0\0b1\u0005\0${letters(120)}\n`],
};

/** Agents and engines: a program that can talk to one has the user's keys, or the machine. */
const SOCKETS: Readonly<Record<string, string>> = {
  "/run/docker.sock": "the container engine's socket",
  "/run/podman/podman.sock": "the container engine's socket",
  "/run/containerd/containerd.sock": "the container engine's socket",
  "/run/user/1000/podman/podman.sock": "the container engine's socket",
  "/run/user/1000/docker.sock": "the container engine's socket",
  [`${BOX_HOME}/.docker/run/docker.sock`]: "the container engine's socket",
  "/run/user/1000/keyring/ssh": "the SSH agent's socket",
  "/tmp/ssh-XXq8Vt2mKz/agent.1187": "the SSH agent's socket",
  [`${BOX_HOME}/.1password/agent.sock`]: "the password manager's socket",
};

/** Where clouds hand out a machine's credentials to everything that runs on it. */
const ADDRESSES: readonly string[] = [
  "169.254.169.254:80",
  "[fd00:ec2::254]:80",
  "169.254.170.2:80",
  "169.254.170.23:80",
  "100.100.100.200:80",
];

/** The names of these addresses, as a program asks a proxy for them. */
const METADATA_NAMES: ReadonlySet<string> = new Set([
  "metadata.google.internal",
  "metadata",
  "instance-data",
  "instance-data.ec2.internal",
  "metadata.azure.internal",
]);

const METADATA = "the cloud's metadata service";

/**
 * Puts canaries into the box's own home folder, never into the workspace, before anything else runs in the box. The
 * runner makes the sockets, together with the observed command. Existing files are left alone and are no canaries; in a
 * box that was parked and resumed they are the ones planted before.
 */
export async function plantCanaries(box: Box): Promise<readonly Canary[]> {
  const planted = await Promise.all(
    Object.entries(FILES).map(async ([file, [name, content]]): Promise<readonly Canary[]> => {
      const at = `${BOX_HOME}/${file}`;
      const before = await box.stat(at);
      if (before.kind === "ok") return box.kept === undefined ? [] : [{ name, kind: "file", at }];
      const canary = { name, kind: "file", at, content: content() } as const;
      const written = await box.write(at, Buffer.from(canary.content));
      if (written.kind !== "ok")
        throw new HarnessError(
          EXIT.sandbox,
          `cannot put a canary into the box: ${written.reason}`,
          "harness doctor",
        );
      return [canary];
    }),
  );
  const sockets = Object.entries(SOCKETS).map(([at, name]) => ({ name, kind: "socket", at }) as const);
  const addresses = ADDRESSES.map((at) => ({ name: METADATA, kind: "address", at }) as const);
  return [...planted.flat(), ...sockets, ...addresses];
}

/** Leads programs that look into their environment to the canaries. */
export const CANARY_ENV: Readonly<Record<string, string>> = {
  SSH_AUTH_SOCK: "/tmp/ssh-XXq8Vt2mKz/agent.1187",
};

/** A touch of a canary, with what led there. */
export interface CanaryReport {
  readonly canary: string;
  /** Where the canary was touched: a path, an address, or `output` if its content was printed. */
  readonly path: string;
  /** The words of the command. */
  readonly command: readonly string[];
  /** The programs that led to the touch, the outermost first; empty if unknown. */
  readonly by: readonly (readonly string[])[];
}

/**
 * The box, with every command observed for touches of these canaries. The runner ends a command at the first touch of a
 * file, a socket or an address; names asked of the proxy and printed contents are reported when the command ends.
 */
export function canaryBox(
  box: OwnedBox,
  canaries: readonly Canary[],
  onTouch: (report: CanaryReport) => void,
): OwnedBox {
  const withTouch = (request: ExecRequest, result: ExecResult): ExecResult => {
    const report = reportOf(request, result, canaries);
    if (report === undefined) return result;
    onTouch(report);
    const reason = `it touched a canary: ${report.canary} (${report.path})`;
    return { ...result, cause: "canary", reason };
  };
  const watched = (request: ExecRequest): ExecRequest => ({
    ...request,
    env: { ...CANARY_ENV, ...request.env },
    observe: { canaries },
  });
  const followed = (job: Job, request: ExecRequest): Job["result"] => {
    const result = job.result.then((ended) => withTouch(request, ended));
    // The job's failure belongs to whoever awaits the job. This promise only reports a touch, even if nobody awaits it.
    result.catch(() => undefined);
    return result;
  };
  const kept =
    box.kept &&
    new Map(
      [...box.kept].map(([name, job]) => {
        const request = { words: [name], timeoutMs: 0, keep: { head: 0, tail: 0 } };
        return [name, { ...job, result: followed(job, request) }] as const;
      }),
    );
  return {
    ...box,
    exec: async (request, signal) => withTouch(request, await box.exec(watched(request), signal)),
    start: (request) => {
      const job = box.start(watched(request));
      return { ...job, result: followed(job, request) };
    },
    ...(kept === undefined ? {} : { kept }),
  };
}

function reportOf(
  { words }: ExecRequest,
  { observed, stdout, stderr, blocked_connections: refused = [] }: ExecResult,
  canaries: readonly Canary[],
): CanaryReport | undefined {
  const touched = observed?.touched ?? null;
  if (observed !== undefined && touched !== null) {
    const { canary, path } = touched;
    return {
      canary: canary === "" ? path : canary,
      path,
      command: words,
      by: processChain(observed, touched.pid),
    };
  }
  const refusedConnection = refused.find(({ host }) => METADATA_NAMES.has(host) || isAddress(host, canaries));
  if (refusedConnection !== undefined)
    return { canary: METADATA, path: refusedConnection.host, command: words, by: [] };
  const [printed] = canariesIn([stdout.head, stdout.tail, stderr.head, stderr.tail], canaries);
  return printed && { canary: printed.name, path: "output", command: words, by: [] };
}

const isAddress = (host: string, canaries: readonly Canary[]): boolean =>
  canaries.some(({ kind, at }) => kind === "address" && at.slice(0, at.lastIndexOf(":")) === host);

/** The processes from the command itself down to this process. */
function processChain({ processes }: Observed, pid: number): readonly (readonly string[])[] {
  const chain: SeenProcess[] = [];
  const passed = new Set<number>();
  for (let next = pid; next !== 0 && !passed.has(next);) {
    passed.add(next);
    const found = processes.findLast((each) => each.pid === next);
    if (found === undefined) break;
    chain.unshift(found);
    next = found.parent;
  }
  return chain.map(({ words }) => words);
}

/** Recognizes the contents of canaries in other data: as plain text, in base64, in hexadecimal digits. */

/** This many matching characters in a row never occur by chance. */
const MIN_TEXT_LENGTH = 16;

interface Sign {
  readonly canary: Canary;
  readonly texts: readonly Buffer[];
}

/** The random parts. Text that is the same in each run is shorter, or is the header of a web token. */
const marksOf = ({ content = "" }: Canary): readonly string[] =>
  (content.match(/[A-Za-z0-9+/_-]{20,}/g) ?? [])
    .flatMap((run) => (run.startsWith("eyJ") ? [] : run.split(/A{3,}/)))
    .filter((word) => word.length >= MIN_MARK_LENGTH && /\d/.test(word) && /[A-Za-z]/.test(word));
const MIN_MARK_LENGTH = 20;

/** A text's base64 form depends on its offset modulo three; its ends also depend on the bytes around it. */
function inBase64(text: string): readonly Buffer[] {
  return [0, 1, 2].map((shift) => {
    const whole = Buffer.from("\0".repeat(shift) + text)
      .toString("base64")
      .replace(/=+$/, "");
    return Buffer.from(whole.slice(shift === 0 ? 0 : 4, -2));
  });
}

function signsOf(canaries: readonly Canary[]): readonly Sign[] {
  return canaries.flatMap((canary) => {
    const marks = marksOf(canary);
    if (marks.length === 0) return [];
    const texts = marks
      .flatMap((mark) => [
        Buffer.from(mark),
        ...inBase64(mark),
        Buffer.from(Buffer.from(mark).toString("hex")),
      ])
      .filter(({ length }) => length >= MIN_TEXT_LENGTH);
    return [{ canary, texts }];
  });
}

/** The canaries that occur, at least in part, in one of these contents. */
export function canariesIn(contents: readonly Uint8Array[], canaries: readonly Canary[]): readonly Canary[] {
  const found = contents.map((content) =>
    Buffer.from(content.buffer, content.byteOffset, content.byteLength),
  );
  if (found.every(({ length }) => length < MIN_TEXT_LENGTH)) return [];
  return signsOf(canaries)
    .filter(({ texts }) => texts.some((text) => found.some((content) => content.includes(text))))
    .map(({ canary }) => canary);
}
