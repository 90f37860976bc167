import { execFileSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { buildPause, BUILT, type Run, versionFlags } from "./cluster-build.ts";

/**
 * Kubernetes 1.20 from the distribution's source package. Nothing is installed: compiler, source and etcd are unpacked
 * into a separate folder, with separate package lists.
 */

const PACKAGES = [
  "golang-1.19-go",
  "golang-1.19-src",
  // The vendored copy crashes under every Go since 1.18.
  "golang-github-modern-go-reflect2-dev",
  "etcd-server",
];

/** Builds into `bin` of this folder. */
export async function buildOfSource(place: string, run: Run): Promise<void> {
  const at = (...parts: readonly string[]): string => path.join(place, ...parts);
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
  const found = /really([\d.]*\d)-|_([\d.]*\d)-/.exec(source ?? "");
  const version = `v${found?.[1] ?? found?.[2]}`;
  await compile(tree, place, version, run);
  await cp(at("root/usr/bin/etcd"), at("bin/etcd"));
  await writeFile(at("bin/version"), `${version}\n`);
}

/** Fetches sources from wherever the system gets its packages; the system's own lists stay unchanged. */
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
  // A source without such a list is no reason to stop: another may have what is needed.
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
  // Generates the one file of the API server that the source package leaves to its makefile.
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
  const flags = versionFlags("k8s.io/kubernetes/vendor/k8s.io/component-base/version", version);
  await mkdir(at("bin"), { recursive: true });
  const wanted = BUILT.map((name) => `./cmd/${name}`);
  await inTree(
    "build",
    "-tags",
    "providerless",
    "-trimpath",
    "-ldflags",
    flags,
    "-o",
    `${at("bin")}/`,
    ...wanted,
  );
  await buildPause(go, place, { run, env });
}
