import { execFileSync, spawnSync } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { parseAllDocuments } from "yaml";
import type { Run } from "./cluster-build.ts";
import { isKept, kept, onceBuilt } from "./cluster-cache.ts";
import { look } from "./cluster-api.ts";
import type { Cluster } from "./cluster.ts";

/** The real controller of Sandboxes, from kubernetes-sigs/agent-sandbox, and the objects that it needs in a cluster. */
const MODULE = "sigs.k8s.io/agent-sandbox";
const AGENT_SANDBOX = "v0.5.6";

const FOLDER = `agent-sandbox-${AGENT_SANDBOX}-2`;
export const SANDBOX_CONTROLLER = path.join(kept(FOLDER), "agent-sandbox-controller");

/** Why there can be no controller here, or false. */
export const noController: string | false =
  !isKept(FOLDER) &&
  spawnSync("go", ["version"]).status !== 0 &&
  "the controller of Sandboxes is built with Go, which is not here (1.26 or later)";

/** The files of the module that are applied: its kinds, the controller's rights, and their binding. */
const APPLIED = [
  "crds/agents.x-k8s.io_sandboxes.yaml",
  "crds/extensions.agents.x-k8s.io_sandboxclaims.yaml",
  "crds/extensions.agents.x-k8s.io_sandboxtemplates.yaml",
  "crds/extensions.agents.x-k8s.io_sandboxwarmpools.yaml",
  "rbac.generated.yaml",
  "extensions-rbac.generated.yaml",
  "controller.yaml",
  "extensions.yaml",
];

/** A Go module, fetched with the local Go settings; puts the controller and the files to apply into `bin`. */
async function buildController(place: string, run: Run): Promise<void> {
  const env = { CGO_ENABLED: "0", GOFLAGS: "-mod=mod", GOWORK: "off", GO111MODULE: "on" };
  const words = ["mod", "download", "-json", `${MODULE}@${AGENT_SANDBOX}`];
  const told = execFileSync("go", words, { cwd: place, encoding: "utf8", env: { ...process.env, ...env } });
  const { Dir } = JSON.parse(told) as { readonly Dir: string };
  const bin = path.join(place, "bin");
  await mkdir(bin);
  const go = (await readFile(path.join(Dir, "go.mod"), "utf8")).match(/^go \S+$/m)?.[0] ?? "go 1.26.0";
  await writeFile(
    path.join(place, "go.mod"),
    `module tests/sandboxes\n\n${go}\n\nrequire ${MODULE} ${AGENT_SANDBOX}\n`,
  );
  const controller = `${MODULE}/cmd/agent-sandbox-controller`;
  await run(
    ["nice", "-n", "10", "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", bin, controller],
    place,
    env,
  );
  for (const file of APPLIED)
    await writeFile(path.join(bin, path.basename(file)), await readFile(path.join(Dir, "k8s", file)));
  await writeFile(path.join(bin, "version"), `${AGENT_SANDBOX}\n`);
}

const PATHS: Readonly<Record<string, string>> = {
  CustomResourceDefinition: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
  ClusterRole: "/apis/rbac.authorization.k8s.io/v1/clusterroles",
  ClusterRoleBinding: "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
};

/**
 * Makes a cluster serve Sandboxes, and starts their controller beside the cluster's other parts, with the rights that
 * its own files give to its account. It runs without its webhook, which only converts from v1alpha1 and would have to
 * be a pod.
 */
export async function startSandboxes(cluster: Cluster, say: (line: string) => void): Promise<void> {
  await onceBuilt(FOLDER, {
    build: buildController,
    say,
    what: "the controller of Sandboxes: a few minutes",
  });
  for (const file of APPLIED) {
    const text = await readFile(path.join(kept(FOLDER), path.basename(file)), "utf8");
    for (const document of parseAllDocuments(text)) {
      const object = document.toJS() as Applied | null;
      const where = PATHS[object?.kind ?? ""];
      if (object === null || where === undefined) continue;
      if (object.kind === "CustomResourceDefinition")
        object.spec = { ...object.spec, conversion: { strategy: "None" } };
      const { status, body } = await cluster.api.ask("POST", where, object);
      if (status !== 201 && status !== 409)
        throw new Error(`${file}: ${status} ${String(body["message"]).slice(0, 500)}`);
    }
  }
  // The controller would end if one of its kinds were not served yet.
  for (const [group, kinds] of Object.entries(KINDS))
    await cluster.api.until(`/apis/${group}/v1beta1`, ({ body }) => {
      const told = (look(body, "resources") ?? []) as readonly { readonly name: string }[];
      return kinds.every((kind) => told.some(({ name }) => name === kind));
    });
  await cluster.start("sandboxes");
}

const KINDS: Readonly<Record<string, readonly string[]>> = {
  "agents.x-k8s.io": ["sandboxes"],
  "extensions.agents.x-k8s.io": ["sandboxclaims", "sandboxtemplates", "sandboxwarmpools"],
};

interface Applied {
  readonly kind: string;
  spec?: object;
}

/** Removes Sandboxes from the cluster: every test begins without them. */
export async function stopSandboxes(cluster: Cluster): Promise<void> {
  await cluster.stop("sandboxes");
  for (const [group, kinds] of Object.entries(KINDS)) {
    for (const kind of kinds) {
      const crd = `${PATHS["CustomResourceDefinition"]}/${kind}.${group}`;
      await cluster.api.ask("DELETE", crd);
      await cluster.api.until(crd, ({ status }) => status === 404);
    }
    await cluster.api.until(`/apis/${group}/v1beta1`, ({ status }) => status === 404);
  }
}
