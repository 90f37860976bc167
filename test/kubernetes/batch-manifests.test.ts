import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import test from "node:test";
import { readRows } from "../../src/app/batch/batch-rows.ts";
import { clusterPlan, manifestsOf } from "../../src/app/batch/cluster-plan.ts";
import { loadConfig } from "../../src/config/load-config.ts";
import { DEFAULTS } from "../../src/config/settings-schema.ts";
import { EXIT } from "../../src/core/errors.ts";
import { lostFields } from "../../src/kubernetes/pod-readback.ts";
import { batchJob, batchRows } from "../../src/kubernetes/batch-job.ts";
import { manifestYaml, type PodSpec, type Role } from "../../src/kubernetes/cluster.ts";
import { scratch } from "../fixtures/scratch.ts";
import { unlike } from "../fixtures/published-schema.ts";
import { KUBERNETES, planFor, rowsFor, SETTINGS } from "../fixtures/cluster-batch.ts";

const kindOf = (object: object): string => ("kind" in object ? String(object.kind) : "");

test("every printed object matches the published schema, without unknown fields", async () => {
  const settings = {
    ...SETTINGS,
    kubernetes: { ...KUBERNETES, queue: "agents", pull_secret: "pull", service_account: "loops" },
  };
  const objects = manifestsOf(await planFor(rowsFor(3), { settings }));
  assert.deepEqual(objects.map(kindOf), [
    "ServiceAccount",
    "Role",
    "RoleBinding",
    "NetworkPolicy",
    "ConfigMap",
    "Job",
  ]);
  for (const object of objects) assert.deepEqual(unlike(object, `V1${kindOf(object)}`, kindOf(object)), []);
  const job = { kind: "Job", spec: { completionModus: "Indexed", completions: "3" } };
  assert.deepEqual(unlike(job, "V1Job", "Job"), [
    "Job.spec.completionModus: V1JobSpec has no such field",
    "Job.spec.completions: expected number",
  ]);
});

const printed = async (rows: number, tag = ""): Promise<string> =>
  manifestYaml(manifestsOf(await planFor(rowsFor(rows), { tag })));

const rulesOf = async (sandbox_resource: "auto" | "never" | "always"): Promise<string> => {
  const settings = { ...SETTINGS, kubernetes: { ...KUBERNETES, sandbox_resource } };
  const role = manifestsOf(await planFor(rowsFor(1), { settings })).find((each) => kindOf(each) === "Role");
  const { rules } = role as Role;
  return (rules ?? [])
    .map(({ resources = [], verbs }) => `${resources.join(" ")}: ${verbs.join(" ")}`)
    .join("; ");
};

test("loops may make Sandboxes where every box is one, and then no pods of their own", async () => {
  assert.doesNotMatch(await rulesOf("auto"), /sandboxes/);
  assert.equal(await rulesOf("auto"), await rulesOf("never"));
  const rules = await rulesOf("always");
  assert.match(rules, /sandboxes: create delete get list/);
  assert.match(rules, /^pods: delete get list watch;/);
});

const POOLED = { ...KUBERNETES, image: "registry.example/box:1", warm_pool: "rows" };

interface PoolPart {
  readonly metadata: { readonly name: string };
  readonly spec: { readonly replicas?: number; readonly podTemplate?: { readonly spec: PodSpec } };
}

test("a batch with a warm pool prints the pool, for boxes like those of its rows", async () => {
  const settings = { ...SETTINGS, kubernetes: POOLED };
  const objects = manifestsOf(await planFor(rowsFor(1), { settings }));
  const [template, pool] = objects.filter((each) => kindOf(each).startsWith("Sandbox")) as PoolPart[];
  assert.ok(template !== undefined && pool !== undefined);
  assert.deepEqual([template.metadata.name, pool.metadata.name, pool.spec.replicas], ["rows", "rows", 2]);
  const { spec } = template.spec.podTemplate ?? assert.fail();
  assert.deepEqual(unlike(spec, "V1PodSpec", "spec"), []);
  const [box] = spec.containers;
  assert.deepEqual(
    [box?.image, box?.volumeMounts?.at(-1)?.mountPath, spec.securityContext?.runAsUser],
    ["registry.example/box:1", "/work/tree", 1000],
  );
});

test("loops of a batch with a pool may also claim its pods, and other loops may not", async () => {
  const settings = { ...SETTINGS, kubernetes: POOLED };
  const objects = manifestsOf(await planFor(rowsFor(1), { settings }));
  const { rules = [] } = objects.find((each) => kindOf(each) === "Role") as Role;
  assert.deepEqual(
    rules.slice(-2).map(({ resources = [], verbs }) => `${resources.join(" ")}: ${verbs.join(" ")}`),
    ["sandboxclaims: create delete get list", "sandboxwarmpools: get"],
  );
  for (const other of [
    { ...SETTINGS, kubernetes: { ...POOLED, warm_pool: null } },
    { ...settings, mode: "read-only" as const },
  ]) {
    const without = manifestsOf(await planFor(rowsFor(1), { settings: other }));
    assert.ok(!/SandboxWarmPool|sandboxclaims/.test(JSON.stringify(without)));
  }
});

test("the same batch prints the same text, and another batch has another name", async () => {
  assert.equal(await printed(3), await printed(3));
  const names = await Promise.all([printed(3), printed(4), printed(3, "again")]);
  assert.equal(new Set(names.map((each) => /name: (harness-batch-\w+)\n/.exec(each)?.[1])).size, 3);
});

test("the loop's pod is restricted, and only the loop has a token and the variables of the model's Secret", async () => {
  const { spec } = batchJob(await planFor(rowsFor(1)));
  assert.ok(spec?.template.spec !== undefined);
  const pod = spec.template.spec;
  assert.deepEqual([pod.automountServiceAccountToken, pod.hostNetwork], [false, undefined]);
  const [clone] = pod.initContainers ?? [];
  const [loop] = pod.containers;
  assert.ok(clone !== undefined && loop !== undefined);
  for (const { securityContext, resources } of [clone, loop]) {
    assert.deepEqual(securityContext, {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      runAsNonRoot: true,
      capabilities: { drop: ["ALL"] },
    });
    // A loop requests few resources, because they stay reserved while it waits for its box.
    assert.equal(resources?.requests?.["cpu"], "100m");
    assert.deepEqual(Object.keys(resources.limits ?? {}), ["cpu", "memory"]);
  }
  const mounts = [clone, loop].map(({ volumeMounts = [] }) => volumeMounts.map(({ name }) => name));
  assert.deepEqual(
    mounts.map((names) => names.includes("token")),
    [false, true],
  );
  assert.deepEqual([loop.envFrom, clone.envFrom], [[{ secretRef: { name: "model" } }], undefined]);
  assert.deepEqual([spec.completionMode, spec.backoffLimitPerIndex, spec.suspend], ["Indexed", 2, true]);
});

const long = (count: number, bytes: number) =>
  readRows(
    Array.from({ length: count }, (_, at) =>
      JSON.stringify({ repo: `https://git.example/owner/r${at}`, prompt: "x".repeat(bytes) }),
    ).join("\n"),
    "rows",
    { check: undefined },
  );

test("rows are split where an object is full, and a batch too large for a cluster is refused with a reason", async () => {
  const maps = batchRows(await planFor(long(30, 90_000)));
  assert.equal(maps.length, 3);
  for (const map of maps) assert.ok(Buffer.byteLength(JSON.stringify(map)) < 2 ** 20);
  assert.deepEqual(
    maps.flatMap(({ data = {} }) =>
      Object.entries(data).flatMap(([name, text]) =>
        name.startsWith("clones") ? text.trimEnd().split("\n") : [],
      ),
    ).length,
    30,
  );
  await assert.rejects(planFor(long(200, 90_000)), { exit: EXIT.usage, message: /a pod gets at most 16/ });
});

const rowOf = (row: object) => readRows(JSON.stringify(row), "rows", { check: undefined });
const REFUSED: readonly (readonly [string, Parameters<typeof planFor>, RegExp])[] = [
  ["a folder of this machine", [rowOf({ dir: "/tmp", prompt: "x" })], /is a folder on this machine/],
  [
    "an address without TLS",
    [rowOf({ repo: "http://git.example/owner/name", prompt: "x" })],
    /without TLS, anyone/,
  ],
  ["a layer", [rowsFor(1), { flags: { isolation: "overlay" } }], /--isolation overlay cannot be used/],
  ["no image of the loop", [rowsFor(1), { settings: DEFAULTS }], /kubernetes\.loop_image is not set/],
  [
    "no volume",
    [rowsFor(1), { settings: { ...SETTINGS, kubernetes: { ...KUBERNETES, results_claim: null } } }],
    /kubernetes\.results_claim is not set/,
  ],
];
const inBucket = (more: object = {}): Partial<Parameters<typeof planFor>[1]> => ({
  settings: {
    ...SETTINGS,
    kubernetes: { ...KUBERNETES, results_claim: null, results_bucket: "s3://team-results/nightly", ...more },
  },
});

test("with a bucket for results a loop has no results volume, the same rights, and no object contains a key", async () => {
  const [withClaim, withBucket] = await Promise.all([planFor(rowsFor(1)), planFor(rowsFor(1), inBucket())]);
  const of = (plan: typeof withClaim) => {
    const pod = batchJob(plan).spec?.template.spec;
    const [loop] = pod?.containers ?? [];
    const out = loop?.args?.find((word) => word.startsWith("--out"));
    const names = [pod?.volumes, loop?.volumeMounts].map((each = []) => each.map(({ name }) => name));
    return { out, names, from: loop?.envFrom };
  };
  const [claim, bucket] = [of(withClaim), of(withBucket)];
  assert.equal(claim.out, `--out=/results/${withClaim.hash}`);
  assert.equal(bucket.out, `--out=s3://team-results/nightly/${withBucket.hash}`);
  assert.deepEqual(
    bucket.names,
    claim.names.map((names) => names.filter((name) => name !== "results")),
  );
  assert.deepEqual(
    claim.names.map((names) => names.includes("results")),
    [true, true],
  );
  assert.deepEqual(bucket.from, [{ secretRef: { name: "model" } }]);
  const objects = manifestsOf(withBucket);
  assert.doesNotMatch(manifestYaml(objects), /AWS_|persistentVolumeClaim|results_bucket/);
  assert.deepEqual(objects.slice(0, -1), manifestsOf(withClaim).slice(0, -1));
  const job = objects.at(-1) ?? {};
  assert.deepEqual(unlike(job, "V1Job", "Job"), []);
});

for (const [what, more, message] of [
  ["a volume as well", { results_claim: "results" }, /results_claim and .*results_bucket are both set/],
  ["no Secret with its keys", { model_secret: null }, /model_secret is not set.*AWS_SECRET_ACCESS_KEY=…/],
] as const)
  test(`refused before a cluster is contacted: a bucket, and ${what}`, () =>
    assert.rejects(planFor(rowsFor(1), inBucket(more)), { exit: EXIT.usage, message }));

const bucketIn = async (results_bucket: string): Promise<string | null> => {
  const HARNESS_KUBERNETES = JSON.stringify({ results_bucket });
  const env = { HOME: "/nowhere", HARNESS_KUBERNETES };
  const { settings } = await loadConfig({ env, project: undefined, flags: new Map() });
  return settings.kubernetes.results_bucket;
};

test("a bucket for results is accepted only as an address that is safe in a Job and in a request", async () => {
  assert.equal(await bucketIn("s3://team-results/a/b_1"), "s3://team-results/a/b_1");
  for (const [bad, why] of [
    ["team-results", /begins with s3:\/\//],
    ["s3://Team", /3 to 63 lower-case letters/],
    ["s3://team-results/$(HOME)", /the prefix of letters, digits/],
    ["s3://team-results/a/", /between single slashes/],
    ["s3://team-results/../x", /\. or \.\./],
  ] as const)
    await assert.rejects(bucketIn(bad), (thrown: Error) => why.test(thrown.message), bad);
});

test("a row that wants no environment is accepted, whatever the settings name", async () => {
  const row = rowOf({ repo: "https://git.example/owner/name", prompt: "x", env: "none" });
  const { rows } = await planFor(row, { settings: { ...SETTINGS, env: "mine" } });
  assert.equal(rows.length, 1);
});

const imageIn = async (image: string | null): Promise<string | undefined> =>
  (await planFor(rowsFor(1), { settings: { ...SETTINGS, image } })).env["HARNESS_IMAGE"];

test("the rows' boxes use the chosen image, as any pod does", async () => {
  assert.equal(await imageIn("registry.example/tools:1"), "registry.example/tools:1");
  assert.equal(await imageIn(null), undefined);
});

for (const [what, asked, words] of REFUSED)
  test(`refused before a cluster is contacted: ${what}`, () =>
    assert.rejects(planFor(...asked), { exit: EXIT.usage, message: words }));

type Granted = Partial<Pick<typeof SETTINGS, "allow_domains" | "secrets" | "provider" | "kubernetes">>;
const API = "api.example.org";
type Ungrantable = readonly [what: string, granted: Granted, message: RegExp, remedy: RegExp];
const UNGRANTABLE: readonly Ungrantable[] = [
  ...["npm", "pip", "cargo", "go", "maven", "apt"].map((preset): Ungrantable => [
    `${preset}, whose registry the tools of this machine know`,
    { allow_domains: [API, preset] },
    new RegExp(`^${preset} means .* a loop in a cluster does not have them$`),
    new RegExp(`--allow-domain ${preset}=registry\\.example\\.org:443$`),
  ]),
  ["a secret for no host", { secrets: { TOKEN: [] } }, /TOKEN has no host/, /--secret TOKEN@/],
  [
    "a secret for a host without a grant",
    { allow_domains: ["example.org"], secrets: { TOKEN: [API] } },
    /not granted by name/,
    /--allow-domain api\.example\.org/,
  ],
  ...["HOME", "HARNESS_POD_NAME", "HARNESS_ENGINE"].map((name): Ungrantable => [
    `${name} as a secret, which the loop sets itself`,
    { allow_domains: [API], secrets: { [name]: [API] } },
    new RegExp(`^the loop of a row sets ${name} itself`),
    /another name/,
  ]),
  [
    "a secret, and no Secret that holds its value",
    {
      allow_domains: [API],
      secrets: { TOKEN: [API] },
      provider: "scripted",
      kubernetes: { ...KUBERNETES, model_secret: null },
    },
    /the value of TOKEN stays on this machine, and no Secret is set/,
    /kubectl create secret generic NAME --from-literal=TOKEN=….*model_secret/,
  ],
];
for (const [what, granted, message, remedy] of UNGRANTABLE)
  test(`refused before a cluster is contacted, because no loop can grant it: ${what}`, () =>
    assert.rejects(planFor(rowsFor(1), { settings: { ...SETTINGS, ...granted } }), {
      exit: EXIT.usage,
      message,
      remedy,
    }));

test("grants reach the loops verbatim, and change the name of the Job", async () => {
  const grants = [`${API}:443:read`, "*.example.org", "git", "npm=registry.example.org:443"];
  const settings = { ...SETTINGS, allow_domains: grants, deny_domains: ["ads.example.org"] };
  const granted = await planFor(rowsFor(1), { settings });
  assert.deepEqual(JSON.parse(granted.env["HARNESS_ALLOW_DOMAINS"] ?? "null"), grants);
  const bound = await planFor(rowsFor(1), { settings: { ...settings, secrets: { TOKEN: [API] } } });
  const fewer = await planFor(rowsFor(1), { settings: { ...settings, deny_domains: [] } });
  const none = await planFor(rowsFor(1));
  assert.equal(none.env["HARNESS_ALLOW_DOMAINS"], undefined);
  assert.equal(new Set([none, granted, bound, fewer].map(({ hash }) => hash)).size, 4);
});

test("only the name and the hosts of a secret are printed; the loop's variables come from the Secret alone", async () => {
  const settings = { ...SETTINGS, allow_domains: [API], secrets: { TOKEN: [API] } };
  const plan = await planFor(rowsFor(1), { settings });
  const [loop] = batchJob(plan).spec?.template.spec?.containers ?? [];
  const named = (loop?.env ?? []).filter(({ name, value }) => `${name} ${value ?? ""}`.includes("TOKEN"));
  assert.deepEqual(named, [{ name: "HARNESS_SECRETS", value: `{"TOKEN":["${API}"]}` }]);
  assert.deepEqual(loop?.envFrom, [{ secretRef: { name: "model" } }]);
});

test("no object contains keys or addresses of this machine", async () => {
  const settings = { ...SETTINGS, base_url: "http://127.0.0.1:9999/v1", provider: "openai" as const };
  const text = manifestYaml(manifestsOf(await clusterPlanOf(settings)));
  assert.ok(!text.includes("9999"));
  assert.ok(text.includes("HARNESS_PROVIDER"));
});

const EVERYTHING = {
  provider: "openai",
  chat_model: "12",
  max_context_tokens: 9000,
  stream: false,
  mode: "read-only",
  canaries: true,
  memory: "300m",
  cpus: 0.5,
  pids: 99,
  timeout: "90s",
  connect_timeout: "3s",
  first_token_timeout: "7m",
  idle_timeout: "61s",
  max_turns: 7,
  attempts: 2,
  temperature: 0.25,
  allow_domains: [
    "api.example.org:443,8443:GET,POST",
    "*.example.org:private",
    "git",
    "npm=r.example.org:443",
  ],
  deny_domains: ["ads.example.org", "*.example.net"],
  network_upload: "3m",
  network_download: "7m",
  network_idle_timeout: "33s",
  secrets: { API_TOKEN: ["api.example.org"] },
  install_scripts: ["esbuild", "@scope/name"],
  min_release_age: "72h",
  prices: [{ model: "m", input: 1.5, output: 2, from: "2026-03-01" }],
  capabilities: [{ prefix: "m", tools: false }],
  kubernetes: {
    image: "registry.example/box:1",
    pull_policy: "Always",
    pull_secret: "pull",
    runtime_class: "gvisor",
    seccomp: "Localhost/harness.json",
    node_selector: { "kubernetes.io/arch": "arm64" },
    sandbox_resource: "never",
    deadline: "61s",
    start_timeout: "50s",
    schedule_timeout: "30s",
    probe: "10.0.0.1:443",
    disk: "65m",
    loop_image: "registry.example/loop:1",
    results_claim: "results",
    model_secret: "model",
  },
};

test("a loop reads the user's settings from its pod, and each pod those of its cluster", async () => {
  await using place = await scratch({ "xdg/harness/config.json": JSON.stringify(EVERYTHING) });
  const load = (env: Readonly<Record<string, string>>) =>
    loadConfig({ env: { HOME: place.at("home"), ...env }, project: undefined, flags: new Map() });
  const { settings } = await load({ XDG_CONFIG_HOME: place.at("xdg") });
  const { env } = await clusterPlanOf(settings);
  const there = (await load({ ...env })).settings;
  const { loop_image: _, results_claim: __, model_secret: ___, ...box } = settings.kubernetes;
  assert.doesNotMatch(env["HARNESS_KUBERNETES"] ?? "", /results_/);
  const { loop_image: ____, results_claim: _____, model_secret: ______, ...boxThere } = there.kubernetes;
  assert.deepEqual(boxThere, box);
  for (const key of Object.keys(EVERYTHING) as (keyof typeof EVERYTHING)[])
    if (key !== "kubernetes") assert.deepEqual([key, there[key]], [key, settings[key]]);
  assert.notDeepEqual(settings.kubernetes, DEFAULTS.kubernetes);
});

const clusterPlanOf = (settings: typeof SETTINGS) =>
  clusterPlan({
    rows: rowsFor(1),
    settings,
    flags: {},
    namespace: "team",
    jobs: 1,
    retries: 0,
    tag: "",
    environments: { of: () => Promise.resolve(undefined) },
  });

test("a quantity may be written differently when read back, but not be another amount", () => {
  const asked = { resources: { limits: { cpu: "1000m", memory: "2Gi" } } };
  const made = (cpu: string, memory: string): readonly string[] =>
    lostFields(asked, { resources: { limits: { cpu, memory } } });
  assert.deepEqual(made("1", "2048Mi"), []);
  assert.deepEqual(made("5", "2Gi"), ["resources.limits.cpu"]);
  assert.deepEqual(made("1", "1Gi"), ["resources.limits.memory"]);
});

test("the printed objects name the seccomp profile for boxes", async () => {
  const settings = { ...SETTINGS, kubernetes: { ...KUBERNETES, seccomp: "Localhost/harness.json" } };
  const yaml = manifestYaml(manifestsOf(await planFor(rowsFor(1), { settings })));
  assert.match(yaml, /HARNESS_KUBERNETES[^]*"seccomp": ?"Localhost\/harness\.json"/);
  assert.doesNotMatch(manifestYaml(manifestsOf(await planFor(rowsFor(1)))), /harness\.json/);
});

test("our seccomp profile for nodes has no fields that need an engine to interpret", async () => {
  const profile = JSON.parse(
    await readFile(new URL("../../sandbox/seccomp.json", import.meta.url), "utf8"),
  ) as { readonly defaultAction: string; readonly syscalls: readonly object[] };
  assert.equal(profile.defaultAction, "SCMP_ACT_ERRNO");
  const known = new Set(["names", "args", "action", "comment", "errnoRet"]);
  assert.deepEqual(
    profile.syscalls.flatMap((rule) => Object.keys(rule)).filter((key) => !known.has(key)),
    [],
  );
});
