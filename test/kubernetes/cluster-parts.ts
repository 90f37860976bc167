import { chmod, mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { API_PORT, NODE, NODE_ADDRESS, PODS, SERVICES } from "./cluster-places.ts";
import type { Release } from "./cluster-programs.ts";
import { SANDBOX_CONTROLLER } from "./cluster-sandboxes.ts";

/** The programs of a cluster, and how each is started. */

/**
 * `none`: nothing is behind a pod's address (without an address the kubelet considers a pod broken and ends it).
 * `open`: pods have addresses, and reach each other, services and the API server; NetworkPolicies are accepted, but not
 * enforced. `enforced`: like `open`, with enforced policies.
 */
export const NETWORKS = ["none", "open", "enforced"] as const;
export type Network = (typeof NETWORKS)[number];

export const PARTS = [
  "engine",
  "etcd",
  "api",
  "controllers",
  "scheduler",
  "kubelet",
  "proxy",
  // From another project, started only on request.
  "sandboxes",
] as const;
export type Part = (typeof PARTS)[number];

export const PAUSE_IMAGE = "harness-test-pause:1";

/** The name of the cluster's control groups, for its containers' processes and pods' resources. */
export const cgroupOf = (name: string): string => `harness-kubernetes-${name}`;

export interface Plan {
  readonly name: string;
  readonly folder: string;
  readonly programs: string;
  readonly version: string;
  readonly release: Release;
  readonly network: Network;
  readonly port: number;
  /** Maximum number of processes in a pod. */
  readonly podPids: number;
}

type Words = readonly string[];

function flags(values: Readonly<Record<string, string | number | boolean>>): Words {
  return Object.entries(values).map(([name, value]) => `--${name}=${value}`);
}

/** The command of each part, run in the cluster's own network namespace. */
export function partWords(plan: Plan): Readonly<Record<Part, Words>> {
  const at = (...parts: readonly string[]): string => path.join(plan.folder, ...parts);
  const program = (name: string): string => path.join(plan.programs, name);
  // Older versions listen without TLS unless told not to; newer ones do not know the flag.
  const noPort = (flag: string): Readonly<Record<string, number>> =>
    plan.release === "1.20" ? { [flag]: 0 } : {};
  return {
    engine: plan.release === "1.20" ? dockerWords(at) : containerdWords(at),
    etcd: [
      program("etcd"),
      ...flags({
        "data-dir": at("etcd"),
        "listen-client-urls": "http://127.0.0.1:2379",
        "advertise-client-urls": "http://127.0.0.1:2379",
        "listen-peer-urls": "http://127.0.0.1:2380",
      }),
    ],
    api: [
      program("kube-apiserver"),
      ...flags({ ...apiFlags(at), ...noPort("insecure-port"), ...alpha(plan.release) }),
    ],
    controllers: [
      program("kube-controller-manager"),
      ...flags({
        kubeconfig: at("config/controllers"),
        "use-service-account-credentials": true,
        "service-account-private-key-file": at("pki/accounts.key"),
        "root-ca-file": at("pki/ca.crt"),
        "leader-elect": false,
        "bind-address": "127.0.0.1",
        ...noPort("port"),
        "node-monitor-grace-period": "20s",
      }),
    ],
    scheduler: [
      program("kube-scheduler"),
      ...flags({
        kubeconfig: at("config/scheduler"),
        "leader-elect": false,
        "bind-address": "127.0.0.1",
        ...noPort("port"),
      }),
    ],
    kubelet: [
      program("kubelet"),
      ...flags({ ...kubeletFlags(at), ...(plan.release === "1.20" ? dockerFlags(at) : {}) }),
    ],
    proxy: [
      program("kube-proxy"),
      ...flags({
        kubeconfig: at("config/proxy"),
        "hostname-override": NODE,
        "proxy-mode": "iptables",
        "cluster-cidr": PODS,
        "oom-score-adj": 0,
        "conntrack-max-per-core": 0,
        "conntrack-tcp-timeout-established": "0s",
        "conntrack-tcp-timeout-close-wait": "0s",
      }),
    ],
    sandboxes: [
      SANDBOX_CONTROLLER,
      ...flags({
        kubeconfig: at("config/sandboxes"),
        "leader-elect": false,
        "enable-webhook": false,
        extensions: true,
        "metrics-bind-address": 0,
        "health-probe-bind-address": 0,
      }),
    ],
  };
}

type At = (...parts: readonly string[]) => string;

/** The socket of the container engine, whichever is used. */
export const ENGINE_SOCKET = "engine.sock";

const dockerWords = (at: At): Words => [
  "dockerd",
  ...flags({
    "config-file": at("daemon.json"),
    "data-root": at("docker"),
    "exec-root": at("exec"),
    pidfile: at("docker.pid"),
    host: `unix://${at(ENGINE_SOCKET)}`,
    bridge: "none",
    iptables: false,
  }),
];

const containerdWords = (at: At): Words => ["containerd", ...flags({ config: at("containerd.toml") })];

const apiFlags = (at: At): Readonly<Record<string, string | number | boolean>> => ({
  "etcd-servers": "http://127.0.0.1:2379",
  "bind-address": "0.0.0.0",
  "secure-port": API_PORT,
  "advertise-address": NODE_ADDRESS,
  "tls-cert-file": at("pki/api.crt"),
  "tls-private-key-file": at("pki/api.key"),
  "client-ca-file": at("pki/ca.crt"),
  "token-auth-file": at("pki/tokens"),
  "anonymous-auth": false,
  "authorization-mode": "Node,RBAC",
  "enable-admission-plugins": "NodeRestriction",
  "service-cluster-ip-range": SERVICES,
  "kubelet-client-certificate": at("pki/kubelet-client.crt"),
  "kubelet-client-key": at("pki/kubelet-client.key"),
  "kubelet-preferred-address-types": "InternalIP",
  "service-account-key-file": at("pki/accounts.key"),
  "service-account-signing-key-file": at("pki/accounts.key"),
  "service-account-issuer": "https://kubernetes.default.svc",
  "allow-privileged": true,
});

/** Mutating admission policies are served only if enabled. */
const alpha = (release: Release): Readonly<Record<string, string>> =>
  release === "1.20"
    ? {}
    : {
        "feature-gates": "MutatingAdmissionPolicy=true",
        "runtime-config": "admissionregistration.k8s.io/v1alpha1=true",
      };

const kubeletFlags = (at: At): Readonly<Record<string, string>> => ({
  config: at("kubelet.json"),
  kubeconfig: at("config/kubelet"),
  "hostname-override": NODE,
  "node-ip": NODE_ADDRESS,
});

/** Newer versions support only one container interface, and leave networks to the container engine. */
const dockerFlags = (at: At): Readonly<Record<string, string>> => ({
  "container-runtime": "docker",
  "docker-endpoint": `unix://${at(ENGINE_SOCKET)}`,
  "pod-infra-container-image": PAUSE_IMAGE,
  "image-pull-progress-deadline": "20s",
  "network-plugin": "cni",
  "cni-conf-dir": at("cni/net.d"),
  "cni-bin-dir": at("cni/bin"),
  "cni-cache-dir": at("cni/cache"),
});

const kubeletConfig = (plan: Plan, at: At): object => ({
  apiVersion: "kubelet.config.k8s.io/v1beta1",
  kind: "KubeletConfiguration",
  ...(plan.release === "1.20" ? {} : { containerRuntimeEndpoint: `unix://${at(ENGINE_SOCKET)}` }),
  address: NODE_ADDRESS,
  authentication: {
    anonymous: { enabled: false },
    webhook: { enabled: true },
    x509: { clientCAFile: at("pki/ca.crt") },
  },
  authorization: { mode: "Webhook" },
  cgroupDriver: "cgroupfs",
  cgroupRoot: `/${cgroupOf(plan.name)}`,
  failSwapOn: false,
  oomScoreAdj: 0,
  podPidsLimit: plan.podPids,
  readOnlyPort: 0,
  resolvConf: at("resolv.conf"),
  volumePluginDir: at("plugins"),
  nodeStatusUpdateFrequency: "4s",
  kubeAPIQPS: 50,
  kubeAPIBurst: 100,
  // A full disk of the machine must not affect these tests.
  evictionHard: { "memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%" },
  imageGCHighThresholdPercent: 100,
  imageGCLowThresholdPercent: 99,
});

const containerdConfig = (at: At): string => {
  const cri = `plugins."io.containerd.grpc.v1.cri"`;
  return `version = 2
root = "${at("containerd")}"
state = "${at("exec")}"
oom_score = 0
disabled_plugins = [${["aufs", "btrfs", "devmapper", "zfs"].map((one) => `"io.containerd.snapshotter.v1.${one}"`).join(", ")}]
[grpc]
address = "${at(ENGINE_SOCKET)}"
[plugins."io.containerd.internal.v1.opt"]
path = "${at("opt")}"
[${cri}]
sandbox_image = "docker.io/library/${PAUSE_IMAGE}"
restrict_oom_score_adj = true
[${cri}.cni]
bin_dir = "${at("cni/bin")}"
conf_dir = "${at("cni/net.d")}"
[${cri}.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[${cri}.containerd.runtimes.runc.options]
BinaryName = "${at("runtime")}"
`;
};

/**
 * Starts containers like `runc`, but without an OOM score below zero, which needs a capability that root lacks on some
 * machines.
 */
const RUNTIME = `#!/bin/sh
at=
for word; do
  [ "$at" != bundle ] || at=$word
  case $word in --bundle | -b) at=bundle ;; --bundle=*) at=\${word#--bundle=} ;; esac
done
[ ! -f "$at/config.json" ] || sed -i 's/"oomScoreAdj":-[0-9]*/"oomScoreAdj":0/' "$at/config.json"
exec runc "$@"
`;

/** Each pod has a virtual cable to the node and a route over it: traffic between pods passes the node's filter. */
const CABLE = `#!/bin/sh
set -eu
folder=$1
cable=v$(printf %.10s "\${CNI_CONTAINERID:-}")
answer() { printf '{"cniVersion":"0.3.1"%s}\\n' "$1"; }
case $CNI_COMMAND in
VERSION) answer ',"supportedVersions":["0.3.0","0.3.1"]' ;;
ADD)
  exec 9>"$folder/cni/lock"
  flock 9
  last=$(cat "$folder/cni/last" 2>/dev/null || echo 0)
  next=$((last % 60000 + 1))
  echo $next >"$folder/cni/last"
  flock -u 9
  address=\${2%%.0.0/*}.$((next / 250)).$((next % 250 + 2))
  ip link add "$cable" type veth peer name "p$cable"
  ip link set "p$cable" netns "$CNI_NETNS" name "$CNI_IFNAME"
  nsenter --net="$CNI_NETNS" sh -eu -c "
    ip addr add $address/32 dev $CNI_IFNAME
    ip link set $CNI_IFNAME up
    ip route add 169.254.1.1 dev $CNI_IFNAME scope link
    ip route add default via 169.254.1.1"
  [ "$4" = none ] || ip link set "$cable" up
  [ "$4" = none ] || ip route add "$address" dev "$cable" src "$3"
  answer ",\\"interfaces\\":[{\\"name\\":\\"$CNI_IFNAME\\",\\"sandbox\\":\\"$CNI_NETNS\\"}],\\"ips\\":[{\\"version\\":\\"4\\",\\"address\\":\\"$address/32\\",\\"interface\\":0}]"
  ;;
DEL) ip link del "$cable" 2>/dev/null || : ;;
CHECK) ;;
esac
`;

const LOOPBACK = `#!/bin/sh
set -eu
case $CNI_COMMAND in
VERSION) echo '{"cniVersion":"0.3.1","supportedVersions":["0.3.0","0.3.1"]}' ;;
ADD)
  nsenter --net="$CNI_NETNS" ip link set lo up
  echo '{"cniVersion":"0.3.1","ips":[{"version":"4","address":"127.0.0.1/8"}]}'
  ;;
esac
`;

async function writeProgram(file: string, text: string): Promise<void> {
  await writeFile(file, text);
  await chmod(file, 0o755);
}

/** Writes the files that the parts read when they start. */
export async function writeSettings(plan: Plan): Promise<void> {
  const at = (...parts: readonly string[]): string => path.join(plan.folder, ...parts);
  for (const name of ["cni/bin", "cni/net.d", "cni/cache", "plugins", "var-lib", "var-log"])
    await mkdir(at(name), { recursive: true });
  await writeProgram(at("runtime"), RUNTIME);
  await writeProgram(at("cni/cable"), CABLE);
  await writeProgram(at("cni/bin/loopback"), LOOPBACK);
  const cable = [at("cni/cable"), plan.folder, PODS, NODE_ADDRESS, plan.network]
    .map((word) => `'${word}'`)
    .join(" ");
  await writeProgram(at("cni/bin/cable"), `#!/bin/sh\nexec ${cable}\n`);
  const network = { cniVersion: "0.3.1", name: "tests", type: "cable" };
  await writeFile(at("cni/net.d/tests.conf"), JSON.stringify(network));
  await writeFile(at("resolv.conf"), "");
  const runtimes = { tests: { path: at("runtime") } };
  await writeFile(at("daemon.json"), JSON.stringify({ runtimes, "default-runtime": "tests" }));
  await writeFile(at("containerd.toml"), containerdConfig(at));
  await writeFile(at("kubelet.json"), JSON.stringify(kubeletConfig(plan, at)));
}
