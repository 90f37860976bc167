import { execFileSync } from "node:child_process";
import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { randomBytes } from "node:crypto";
import path from "node:path";

/** Paths, addresses and users of a test cluster. */

/** Visible only in the cluster's own network namespace, so that several clusters can have the same. */
export const NODE_ADDRESS = "10.213.0.1";
export const SERVICES = "10.214.0.0/16";
export const PODS = "10.215.0.0/16";
const API_SERVICE = "10.214.0.1";
export const API_PORT = 6443;
export const NODE = "node";

export const folderOf = (name: string): string => `/var/tmp/harness-kubernetes-${name}`;

/** Users of the cluster's parts, each with a token; their rights are Kubernetes' own. */
const USERS: Readonly<Record<string, readonly [user: string, group: string]>> = {
  admin: ["admin", "system:masters"],
  kubelet: [`system:node:${NODE}`, "system:nodes"],
  scheduler: ["system:kube-scheduler", ""],
  controllers: ["system:kube-controller-manager", ""],
  proxy: ["system:kube-proxy", ""],
  policies: ["harness-test-policies", "system:masters"],
  sandboxes: [
    "system:serviceaccount:agent-sandbox-system:agent-sandbox-controller",
    "system:serviceaccounts",
  ],
};

/** The text of a kubeconfig; JSON is YAML. */
function kubeconfigText(server: string, authority: string, token: string, namespace = "default"): string {
  return JSON.stringify(
    {
      apiVersion: "v1",
      kind: "Config",
      clusters: [{ name: "tests", cluster: { server, "certificate-authority-data": authority } }],
      users: [{ name: "user", user: { token } }],
      contexts: [{ name: "tests", context: { cluster: "tests", user: "user", namespace } }],
      "current-context": "tests",
    },
    null,
    2,
  );
}

/**
 * Writes certificates, keys, tokens and kubeconfigs: `config/USER` for use inside, `kubeconfig` for use from this
 * machine's loopback.
 */
export async function writeCredentials(folder: string, port: number): Promise<void> {
  const at = (...parts: readonly string[]): string => path.join(folder, ...parts);
  for (const name of ["pki", "config", "logs"]) await mkdir(at(name), { recursive: true, mode: 0o700 });
  const openssl = (...words: readonly string[]): void =>
    void execFileSync("openssl", words, { cwd: at("pki"), stdio: ["ignore", "ignore", "pipe"] });
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30"];
  openssl("req", "-x509", ...key, "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=harness-tests");
  const signed = (name: string, subject: string, uses: string): void => {
    const by = ["-CA", "ca.crt", "-CAkey", "ca.key", "-subj", subject, "-addext", uses];
    openssl("req", "-x509", ...key, "-keyout", `${name}.key`, "-out", `${name}.crt`, ...by);
  };
  const names = ["DNS:localhost", "DNS:kubernetes.default.svc", "IP:127.0.0.1"];
  const addresses = [`IP:${NODE_ADDRESS}`, `IP:${API_SERVICE}`];
  signed("api", "/CN=kube-apiserver", `subjectAltName=${[...names, ...addresses].join(",")}`);
  signed("kubelet-client", "/O=system:masters/CN=kube-apiserver", "extendedKeyUsage=clientAuth");
  openssl("genrsa", "-out", "accounts.key", "2048");
  const authority = (await readFile(at("pki/ca.crt"))).toString("base64");
  const tokens: string[] = [];
  for (const [name, [user, group]] of Object.entries(USERS)) {
    const token = randomBytes(24).toString("hex");
    tokens.push(`${token},${user},${name},"${group}"`);
    const text = kubeconfigText(`https://${NODE_ADDRESS}:${API_PORT}`, authority, token);
    await writeFile(at("config", name), text, { mode: 0o600 });
    if (name !== "admin" && name !== "policies") continue;
    const outside = kubeconfigText(`https://127.0.0.1:${port}`, authority, token);
    await writeFile(name === "admin" ? at("kubeconfig") : at("config", name), outside, { mode: 0o600 });
  }
  await writeFile(at("pki/tokens"), `${tokens.join("\n")}\n`, { mode: 0o600 });
  await chmod(folder, 0o711);
}
