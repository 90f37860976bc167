import { X509Certificate } from "node:crypto";
import { readdir, readFile, stat } from "node:fs/promises";
import path from "node:path";
import { errorCode, reasonOf } from "../../core/errors.ts";

/**
 * The certificates that the host's own tools verify servers against, as one bundle: in a company network these are more
 * than the public ones.
 */
export interface HostTrust {
  /** Certificates only, each once, whatever else the files hold. */
  readonly pem: string;
  /** Where the certificates come from, and how many each source added to those before it. */
  readonly sources: readonly { readonly from: string; readonly added: number }[];
  /** Sources that were named but cannot be used, in words. */
  readonly troubles: readonly string[];
}

type Env = Readonly<Record<string, string | undefined>>;

/** Where systems keep the file that OpenSSL, GnuTLS and Go read; the first existing file counts. */
const SYSTEM_FILES: readonly string[] = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
  "/etc/pki/tls/certs/ca-bundle.crt",
  "/etc/ssl/ca-bundle.pem",
  "/etc/ssl/cert.pem",
];

/** Variables of tools that name a file of certificates, and variables that name folders of such files. */
const FILE_VARIABLES: readonly string[] = [
  "SSL_CERT_FILE",
  "NIX_SSL_CERT_FILE",
  "NODE_EXTRA_CA_CERTS",
  "REQUESTS_CA_BUNDLE",
  "PIP_CERT",
  "CURL_CA_BUNDLE",
  "GIT_SSL_CAINFO",
  "CARGO_HTTP_CAINFO",
  "NPM_CONFIG_CAFILE",
  "npm_config_cafile",
  "AWS_CA_BUNDLE",
  "DENO_CERT",
];
const FOLDER_VARIABLES: readonly string[] = ["SSL_CERT_DIR", "GIT_SSL_CAPATH"];

/** For all files together; a system's own bundle has a quarter of a megabyte. */
const MAX_BYTES = 16 * 2 ** 20;
const MAX_FILES = 2000;
const MAX_CERTIFICATES = 5000;

/** Returns only the bundle; warns about what cannot be used. */
export async function hostTrust(env: Env, warn: (text: string) => void): Promise<string> {
  const { pem, troubles } = await readHostTrust(env);
  for (const trouble of troubles) warn(`not among the authorities that the box trusts: ${trouble}`);
  return pem;
}

/** `systemFiles` is for tests. Uses no network, and does not take along any key that stands beside a certificate. */
export async function readHostTrust(
  env: Env,
  systemFiles: readonly string[] = SYSTEM_FILES,
): Promise<HostTrust> {
  const gathering = new CertificateCollector();
  await gathering.system(systemFiles);
  for (const name of FILE_VARIABLES) if (env[name]) await gathering.file(env[name], name);
  for (const name of FOLDER_VARIABLES)
    for (const folder of (env[name] ?? "").split(path.delimiter))
      if (folder !== "") await gathering.folder(folder, name);
  return gathering.all();
}

const BLOCK = /-----BEGIN CERTIFICATE-----[\w+/=\s]+-----END CERTIFICATE-----/g;

class CertificateCollector {
  readonly #certificates = new Map<string, string>();
  readonly #sources: { from: string; added: number }[] = [];
  readonly #troubles: string[] = [];
  readonly #read = new Set<string>();
  readonly #blocks = new Set<string>();
  #bytes = 0;

  /** The first existing file; without one, the certificates that the system reports through Node, or Node's roots. */
  async system(files: readonly string[]): Promise<void> {
    for (const file of files)
      if ((await isFile(file)) && (await this.file(file, "the system's store")) > 0) return;
    // Loaded here: every box loads this module, and few get this far.
    const { getCACertificates, rootCertificates } = await import("node:tls");
    const from = getCACertificates("system");
    if (from.length > 0) this.#add(from.join("\n"), "the system's store");
    else this.#add(rootCertificates.join("\n"), "Node's own roots");
  }

  async file(file: string, from: string): Promise<number> {
    if (this.#read.has(file)) return 0;
    this.#read.add(file);
    const text = await this.#text(file, from);
    return text === undefined ? 0 : this.#add(text, `${from} (${file})`);
  }

  /** Reads OpenSSL's links (`a1b2c3d4.0`) and files whose names say that they are certificates. */
  async folder(folder: string, from: string): Promise<void> {
    if (this.#read.has(folder)) return;
    this.#read.add(folder);
    try {
      const names = (await readdir(folder)).filter((name) =>
        /^[0-9a-f]{8}\.\d+$|\.(?:pem|crt|cer)$/.test(name),
      );
      if (names.length > MAX_FILES)
        this.#troubles.push(`${from}: ${folder} has more than ${MAX_FILES} files`);
      const files = names.toSorted().slice(0, MAX_FILES);
      const texts = await Promise.all(files.map((name) => this.#text(path.join(folder, name), from)));
      this.#add(texts.map((text) => text ?? "").join("\n"), `${from} (${folder})`, false);
    } catch (thrown) {
      this.#troubles.push(`${from}: ${folder}: ${reasonOf(thrown)}`);
    }
  }

  async #text(file: string, from: string): Promise<string | undefined> {
    try {
      const facts = await stat(file);
      if (!facts.isFile()) return void this.#troubles.push(`${from}: ${file} is not a file`);
      this.#bytes += facts.size;
      if (this.#bytes > MAX_BYTES)
        return void this.#troubles.push(
          `${from}: ${file} is left out, because all files together are too large`,
        );
      return await readFile(file, "latin1");
    } catch (thrown) {
      const why = errorCode(thrown) === "ENOENT" ? "is not there" : `cannot be read: ${reasonOf(thrown)}`;
      return void this.#troubles.push(`${from}: ${file} ${why}`);
    }
  }

  #add(text: string, from: string, expected = true): number {
    const before = this.#certificates.size;
    const blocks = text.match(BLOCK) ?? [];
    let unreadable = 0;
    for (const block of blocks) {
      // The same file stands behind several names: reading each block again would take longer than making a box.
      if (this.#blocks.has(block)) continue;
      const certificate = readCertificate(block);
      if (certificate !== undefined) this.#blocks.add(block);
      if (certificate === undefined) unreadable += 1;
      else if (this.#certificates.size < MAX_CERTIFICATES) this.#certificates.set(...certificate);
    }
    if (unreadable > 0) this.#troubles.push(`${from}: ${unreadable} certificates in it cannot be read`);
    if (blocks.length === 0 && expected) this.#troubles.push(`${from}: it contains no certificate in PEM`);
    const added = this.#certificates.size - before;
    if (blocks.length > unreadable) this.#sources.push({ from, added });
    return blocks.length - unreadable;
  }

  all(): HostTrust {
    return {
      pem: Array.from(this.#certificates.values()).join(""),
      sources: this.#sources,
      troubles: this.#troubles,
    };
  }
}

/** The certificate's fingerprint, and its text in one canonical form. */
function readCertificate(block: string): readonly [print: string, pem: string] | undefined {
  try {
    const certificate = new X509Certificate(block);
    return [certificate.fingerprint256, certificate.toString()];
  } catch {
    return undefined;
  }
}

async function isFile(file: string): Promise<boolean> {
  try {
    return (await stat(file)).isFile();
  } catch {
    return false;
  }
}
