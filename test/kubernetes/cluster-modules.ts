import { execFileSync } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { buildPause, BUILT, type Run, versionFlags } from "./cluster-build.ts";

/**
 * A newer Kubernetes, built from modules that Go fetches with the local settings (GOPROXY, GOSUMDB). The module of
 * Kubernetes refers to folders of its repository for modules that are also published separately, each under the same
 * version with a leading 0: a main module of ours refers to those.
 */
const KUBERNETES = "v1.33.13";
const ETCD = "v3.5.35";

interface Module {
  readonly name: string;
  readonly text: string;
  readonly packages: readonly string[];
  readonly flags: string;
}

/** Builds into `bin` of this folder: takes some twenty minutes on one core, and three gigabytes in Go's caches. */
export async function buildOfModules(place: string, run: Run): Promise<void> {
  const go = ["nice", "-n", "10", "go"];
  const env = { CGO_ENABLED: "0", GOFLAGS: "-mod=mod", GOWORK: "off", GO111MODULE: "on" };
  await mkdir(path.join(place, "bin"), { recursive: true });
  const kubernetes: Module = {
    name: "kubernetes",
    text: await mainModule(place),
    packages: BUILT.map((name) => `k8s.io/kubernetes/cmd/${name}`),
    flags: versionFlags("k8s.io/component-base/version", KUBERNETES),
  };
  const etcd: Module = {
    name: "etcd",
    text: `module tests/etcd\n\ngo 1.24.0\n\nrequire (\n\tgo.etcd.io/etcd/server/v3 ${ETCD}\n\tgithub.com/modern-go/reflect2 v1.0.2\n)\n`,
    packages: ["go.etcd.io/etcd/server/v3"],
    flags: "-s -w",
  };
  for (const { name, text, packages, flags } of [kubernetes, etcd]) {
    const folder = path.join(place, name);
    await mkdir(folder);
    await writeFile(path.join(folder, "go.mod"), text);
    // A package at the root of a module with a later major version is named after its parent folder.
    const out = path.join(place, "bin", name === "etcd" ? "etcd" : "");
    const words = ["build", "-trimpath", "-tags", "providerless", "-ldflags", flags, "-o", out, ...packages];
    await run([...go, ...words], folder, env);
  }
  await buildPause(go, place, { run, env });
  await writeFile(path.join(place, "bin/version"), `${KUBERNETES}\n`);
}

async function mainModule(place: string): Promise<string> {
  const words = ["mod", "download", "-json", `k8s.io/kubernetes@${KUBERNETES}`];
  const told = execFileSync("go", words, {
    cwd: place,
    encoding: "utf8",
    env: { ...process.env, GOWORK: "off" },
  });
  const { GoMod: file } = JSON.parse(told) as { readonly GoMod: string };
  const text = await readFile(file, "utf8");
  const own = [...text.matchAll(/^\s*(?:replace )?(\S+) => \.\/staging\//gm)].map(([, name]) => name);
  if (own.length === 0)
    throw new Error(`${file} points at no folder of its repository: it is built another way now`);
  const staged = `v0${KUBERNETES.slice(2)}`;
  return [
    "module tests/kubernetes",
    /^go \S+$/m.exec(text)?.[0] ?? "go 1.24.0",
    `require k8s.io/kubernetes ${KUBERNETES}`,
    ...own.map((name) => `replace ${name} => ${name} ${staged}`),
    "",
  ].join("\n");
}
