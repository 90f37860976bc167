import { readFile } from "node:fs/promises";
import { rootCertificates } from "node:tls";

/** Where systems keep whom they trust; the first that is there counts. */
const SYSTEM = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/tls/certs/ca-bundle.crt",
  "/etc/ssl/ca-bundle.pem",
  "/etc/ssl/cert.pem",
];

/** By which tools of the host are told of further authorities, such as a company's own. */
const NAMED = [
  "SSL_CERT_FILE",
  "NODE_EXTRA_CA_CERTS",
  "REQUESTS_CA_BUNDLE",
  "CURL_CA_BUNDLE",
  "PIP_CERT",
  "GIT_SSL_CAINFO",
  "CARGO_HTTP_CAINFO",
];

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** PEM of all whom the tools of the host trust, each once. Files that are not there are left out. */
export async function hostTrust(env: Readonly<Record<string, string | undefined>>): Promise<string> {
  const named = NAMED.flatMap((name) => env[name] ?? []);
  const texts = await Promise.all([systemTrust(), ...[...new Set(named)].map(certificatesOf)]);
  return `${[...new Set(texts.flat())].join("\n")}\n`;
}

async function systemTrust(): Promise<readonly string[]> {
  for (const file of SYSTEM) {
    const found = await certificatesOf(file);
    if (found.length > 0) return found;
  }
  return rootCertificates;
}

const certificatesOf = async (file: string): Promise<readonly string[]> =>
  (await readFile(file, "utf8").catch(() => "")).match(CERTIFICATE) ?? [];
