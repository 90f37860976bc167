import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { createWriteStream, existsSync, readdirSync } from "node:fs";
import { cp, mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import path from "node:path";
import { skip } from "../fixtures/engine.ts";

/**
 * The programs of a Kubernetes, built of the distribution's source package. Nothing is installed: compiler, source and
 * etcd are unpacked into a folder of their own, with lists of packages of their own, and what was built is kept.
 */

/** Another way to build them: another number. */
const RECIPE = 1;
const CACHE = path.join(process.env["XDG_CACHE_HOME"] ?? path.join(homedir(), ".cache"), "harness-tests");
const KEPT = path.join(CACHE, `kubernetes-${RECIPE}`);

const PACKAGES = [
  "golang-1.19-go",
  "golang-1.19-src",
  // The vendored copy crashes under every Go since 1.18.
  "golang-github-modern-go-reflect2-dev",
  "etcd-server",
];
const BUILT = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy"];

/** It holds the namespaces of a pod, as the image of that name does that no registry is asked for. */
const PAUSE = `package main
import ("os"; "os/signal"; "syscall")
func main() { told := make(chan os.Signal, 1); signal.Notify(told, syscall.SIGINT, syscall.SIGTERM); <-told }
`;

const has = (program: string): boolean => spawnSync("sh", ["-c", `command -v ${program}`]).status === 0;
const used = ["dockerd", "containerd", "runc", "unshare", "nsenter", "ip", "iptables", "openssl"];
const building = ["apt-get", "dpkg-source", "dpkg-deb"];
const isBuilt = existsSync(path.join(KEPT, "version"));
const missing = [...used, ...(isBuilt ? [] : building)].filter((program) => !has(program));

/** Why there can be no cluster here, with what to do about it, or false. */
export const noCluster: string | false =
  (process.platform !== "linux" && "a cluster is brought up on Linux only") ||
  (process.getuid?.() !== 0 && "only root can bring up a cluster (run it as root)") ||
  (missing.length > 0 &&
    `no ${missing.join(", ")} (apt-get install docker.io iproute2 iptables openssl dpkg-dev)`) ||
  (!existsSync("/sys/fs/cgroup/memory") && "this Kubernetes knows the first version of the cgroups only") ||
  skip;

export interface Programs {
  /** Where `kubelet` and the others lie. */
  readonly folder: string;
  readonly version: string;
}

/** Builds them where they were never built: eight minutes on two cores, two gigabytes of disk meanwhile. */
export async function clusterPrograms(say: (line: string) => void): Promise<Programs> {
  if (!isBuilt) {
    await mkdir(CACHE, { recursive: true });
    const place = await mkdtemp(path.join(CACHE, "building-"));
    say(`building Kubernetes of the distribution's source package, once (${place}/log) …`);
    try {
      await build(place);
      await rename(path.join(place, "bin"), KEPT).catch((thrown: unknown) => {
        // Somebody else built it meanwhile.
        if (!existsSync(path.join(KEPT, "version"))) throw thrown;
      });
    } finally {
      await rm(place, { recursive: true, force: true });
    }
  }
  return { folder: KEPT, version: (await readFile(path.join(KEPT, "version"), "utf8")).trim() };
}

async function build(place: string): Promise<void> {
  const at = (...parts: readonly string[]): string => path.join(place, ...parts);
  const log = createWriteStream(at("log"), { flags: "a" });
  await once(log, "open");
  const run = async (words: readonly string[], cwd = place, env: object = {}): Promise<void> => {
    const [program = "", ...rest] = words;
    const child = spawn(program, rest, {
      cwd,
      env: { ...process.env, ...env },
      stdio: ["ignore", log, log],
    });
    const [code] = (await once(child, "exit")) as [number | null];
    if (code === 0) return;
    const told = (await readFile(at("log"), "utf8")).trimEnd().split("\n").slice(-15).join("\n");
    throw new Error(`${words.slice(0, 3).join(" ")} … ended with ${code}:\n${told}`);
  };
  await fetchPackages(place, run);
  const tree = at("go/src/k8s.io/kubernetes");
  await mkdir(path.dirname(tree), { recursive: true });
  const source = readdirSync(at("source")).find((name) => name.endsWith(".dsc"));
  await run(["dpkg-source", "-x", at("source", source ?? ""), tree]);
  const reflect = "src/github.com/modern-go/reflect2";
  await rm(path.join(tree, "vendor/github.com/modern-go/reflect2"), { recursive: true });
  await cp(at("root/usr/share/gocode", reflect), path.join(tree, "vendor", reflect.slice(4)), {
    recursive: true,
  });
  const version = /really([\d.]*\d)-|_([\d.]*\d)-/.exec(source ?? "");
  await compile(tree, place, `v${version?.[1] ?? version?.[2]}`, run);
  await cp(at("root/usr/bin/etcd"), at("bin/etcd"));
  await writeFile(at("bin/version"), `v${version?.[1] ?? version?.[2]}\n`);
}

type Run = (words: readonly string[], cwd?: string, env?: object) => Promise<void>;

/** Sources are asked of wherever the system has its packages from; its own lists stay as they are. */
async function fetchPackages(place: string, run: Run): Promise<void> {
  const at = (...parts: readonly string[]): string => path.join(place, ...parts);
  for (const folder of ["lists/partial", "cache/archives/partial", "parts", "source", "packages", "root"])
    await mkdir(at(folder), { recursive: true });
  const folder = "/etc/apt/sources.list.d";
  const known = existsSync(folder) ? readdirSync(folder).map((name) => path.join(folder, name)) : [];
  for (const file of ["/etc/apt/sources.list", ...known].filter((name) => existsSync(name))) {
    const text = await readFile(file, "utf8");
    const both = file.endsWith(".sources")
      ? text.replaceAll(/^Types: *deb *$/gm, "Types: deb deb-src")
      : text.replaceAll(/^deb (.*)$/gm, "deb $1\ndeb-src $1");
    await writeFile(at("parts", path.basename(file).replace(/^sources\.list$/, "sources-list.list")), both);
  }
  const own = { "State::Lists": "lists", Cache: "cache", "Etc::sourceparts": "parts" };
  const options = Object.entries(own).flatMap(([key, name]) => ["-o", `Dir::${key}=${at(name)}`]);
  const apt = [
    "apt-get",
    ...options,
    "-o",
    "Dir::Etc::sourcelist=/dev/null",
    "-o",
    "APT::Sandbox::User=root",
  ];
  // A source that has no such list is no reason to stop: what is needed may come from another.
  await run([...apt, "update"]).catch(() => undefined);
  await run([...apt, "source", "--download-only", "kubernetes"], at("source"));
  await run([...apt, "download", ...PACKAGES], at("packages"));
  for (const name of readdirSync(at("packages")))
    await run(["dpkg-deb", "-x", at("packages", name), at("root")]);
}

const GENERATED = "pkg/generated/openapi";

async function compile(tree: string, place: string, version: string, run: Run): Promise<void> {
  const at = (...parts: readonly string[]): string => path.join(place, ...parts);
  const root = at("root/usr/lib/go-1.19");
  const go = ["nice", "-n", "5", path.join(root, "bin/go")];
  const env = {
    GOROOT: root,
    GOPATH: at("go"),
    GOCACHE: at("go-cache"),
    GOFLAGS: "",
    CGO_ENABLED: "0",
    GO111MODULE: "off",
  };
  const inTree = (...words: readonly string[]): Promise<void> => run([...go, ...words], tree, env);
  await inTree("build", "-o", at("openapi-gen"), "./vendor/k8s.io/kube-openapi/cmd/openapi-gen");
  // What the source package leaves to its makefile: the one file of the API server that is made.
  const marked = execFileSync(
    "sh",
    ["-c", `for one in vendor/k8s.io/*/ pkg/; do grep -rl --include='*.go' '+k8s:openapi-gen=' "$one"; done`],
    { cwd: tree, encoding: "utf8", maxBuffer: 2 ** 26 },
  );
  const folders = new Set(
    marked
      .split("\n")
      .filter(Boolean)
      .map((file) => path.dirname(file)),
  );
  const inputs = [...folders]
    .filter((folder) => !/k8s\.io\/(code-generator|sample-)|\/testdata\//.test(folder))
    .map((folder) => `k8s.io/kubernetes/${folder}`);
  const header = ["-h", "vendor/k8s.io/code-generator/hack/boilerplate.go.txt", "-r", at("violations")];
  const out = ["-p", `k8s.io/kubernetes/${GENERATED}`, "-O", "zz_generated.openapi"];
  const generate = [at("openapi-gen"), "--logtostderr", "-i", inputs.join(","), ...out, ...header];
  await run(generate, tree, { ...env, PATH: `${path.join(root, "bin")}:${process.env["PATH"]}` });
  const [, major, minor] = /^v(\d+)\.(\d+)/.exec(version) ?? [];
  const told = { gitVersion: version, gitMajor: major, gitMinor: minor, buildDate: "1970-01-01T00:00:00Z" };
  const flags = Object.entries(told).map(
    ([name, value]) => `-X k8s.io/kubernetes/vendor/k8s.io/component-base/version.${name}=${value}`,
  );
  await mkdir(at("bin"), { recursive: true });
  const wanted = BUILT.map((name) => `./cmd/${name}`);
  await inTree(
    "build",
    "-tags",
    "providerless",
    "-trimpath",
    "-ldflags",
    `-s -w ${flags.join(" ")}`,
    "-o",
    `${at("bin")}/`,
    ...wanted,
  );
  await mkdir(at("pause"), { recursive: true });
  await writeFile(at("pause/pause.go"), PAUSE);
  await run([...go, "build", "-ldflags", "-s -w", "-o", at("bin/pause"), at("pause/pause.go")], place, env);
}
