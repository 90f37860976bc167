// also slow: a kill at each step
import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import test from "node:test";
import { DEFAULTS, SETTING_KEYS, type SettingKey, USERS_OWN } from "../../src/config/settings-schema.ts";
import type { Scratch } from "../fixtures/scratch.ts";
import { killingItself } from "../kills/killed.ts";
import { household } from "./box-command.ts";
import { eventsOf, harness, startModel } from "./run-command.ts";
import { noTerminal as skip, onTerminal } from "./terminal.ts";
import { toldTrust, trustAll, trustNothing } from "./trusted.ts";
import { slowTest } from "../fixtures/slow-test.ts";

const SETTINGS = ".harness/config.json";

/** Of every setting a value that loosens it. */
const LOOSE: Readonly<Record<SettingKey, unknown>> = {
  provider: "openai",
  base_url: "http://127.0.0.1:9/v1",
  chat_model: "theirs",
  embed_model: "theirs",
  max_context_tokens: 1_000_000,
  stream: false,
  plain: true,
  notify: "both",
  mode: "danger-full-access",
  on_ask: "park",
  park_timeout: "48h",
  engine: "tcp://127.0.0.1:9",
  isolation: "bind",
  image: "theirs",
  env: "theirs",
  canaries: false,
  history: true,
  memory: "64g",
  cpus: 64,
  pids: 4_000_000,
  timeout: "59m",
  connect_timeout: "5m",
  first_token_timeout: "100m",
  idle_timeout: "100m",
  max_turns: 10_000,
  check: "true",
  attempts: 16,
  temperature: 2,
  allow_domains: ["example.org"],
  deny_domains: ["example.org"],
  network_upload: "1g",
  network_download: "8g",
  network_idle_timeout: "59m",
  secrets: { API_TOKEN: ["api.example.org"] },
  install_scripts: ["esbuild"],
  min_release_age: "72h",
  hooks: [{ event: "Stop", command: "touch /tmp/theirs" }],
  tools: { theirs: { description: "theirs", command: "true" } },
  search: { store: "qdrant", url: "http://127.0.0.1:9" },
  kubernetes: { image: "registry.example/theirs:1", runtime_class: "runc" },
  web: { fetch: true, search: { provider: "searxng", url: "http://127.0.0.1:9/" } },
  mcp: { files: { command: ["server"] } },
  prices: [{ model: "*", input: 0, output: 0 }],
  capabilities: [{ prefix: "qwen", context: 100_000_000 }],
};

interface Row {
  readonly value: unknown;
  readonly origin: string;
  readonly ignored?: { readonly value: unknown };
}

async function configOf(place: Scratch): Promise<Readonly<Record<string, Row>>> {
  const ran = await harness(place, ["config", "list", "--json"]);
  assert.equal(ran.code, 0, ran.stderr);
  return JSON.parse(ran.stdout) as Record<string, Row>;
}

interface Told {
  readonly hash: string;
  readonly damage: string | null;
  readonly items: readonly {
    readonly kind: string;
    readonly standing: string;
    readonly diff: readonly string[];
  }[];
}

async function shown(place: Scratch): Promise<Told> {
  return JSON.parse((await harness(place, ["trust", "--show", "--json"])).stdout) as Told;
}

const standings = async (place: Scratch): Promise<readonly string[]> =>
  (await toldTrust(place)).items.map(({ standing }) => standing);

test("a project that loosens every setting changes none until it is trusted", async () => {
  // With a user's own choice where the default is the loosest already.
  await using place = await household({ [SETTINGS]: JSON.stringify(LOOSE) });
  await place.write(
    ".config/harness/config.json",
    '{"isolation": "overlay", "cpus": 1, "canaries": true, "history": false, "min_release_age": "96h"}',
  );
  const before = await configOf(place);
  for (const key of SETTING_KEYS) {
    // Nothing that a project denies loosens.
    if (key === "deny_domains") continue;
    if (!["isolation", "cpus", "canaries", "history", "min_release_age"].includes(key))
      assert.deepEqual(before[key]?.value, DEFAULTS[key], key);
    assert.ok(before[key]?.ignored !== undefined, `${key} is not said to be ignored`);
  }
  const { hash } = await shown(place);
  assert.equal((await harness(place, ["trust", "--yes", hash])).code, 0);
  const after = await configOf(place);
  for (const key of SETTING_KEYS) {
    if (USERS_OWN.has(key)) {
      assert.deepEqual([after[key]?.value, after[key]?.origin], [DEFAULTS[key], "default"], key);
      assert.ok(after[key]?.ignored !== undefined, `${key} is not said to be ignored`);
      continue;
    }
    assert.equal(after[key]?.origin, place.at("work", SETTINGS), key);
    assert.equal(after[key]?.ignored, undefined);
  }
  assert.deepEqual([after["mode"]?.value, after["isolation"]?.value], ["danger-full-access", "bind"]);
});

test("settings that only tighten apply at once", async () => {
  await using place = await household({
    [SETTINGS]: '{"mode": "read-only", "pids": 64, "on_ask": "refuse"}',
  });
  const config = await configOf(place);
  assert.deepEqual(
    ["mode", "pids", "on_ask"].map((key) => config[key]?.value),
    ["read-only", 64, "refuse"],
  );
  const { code, stdout } = await harness(place, ["trust"]);
  assert.deepEqual([code, stdout], [0, `${SETTINGS}: only tightens, so it applies without trust\n`]);
});

test("trust shows what a project would do, without control characters", async () => {
  const text = JSON.stringify({
    mode: "danger-full-access",
    chat_model: "a\u202Eb\u001B[2J\u200B",
    pids: 64,
  });
  await using place = await household({
    [SETTINGS]: text,
    ".harness/policy.toml":
      '[[rule]]\nprefix = ["frob"]\ndecision = "allow"\nreason = "it\\u009b2J"\nmatch = ["frob"]\n[[rule]]\ntool = "tracker__*"\ndecision = "allow"\nreason = "r"\n',
    ".harness/env.json":
      '{"detected": true, "image": "theirs", "packages": ["libpq-dev"], "registries": ["npm"], "setup": [{"run": "make"}]}',
    ".devcontainer/devcontainer.json":
      '{"build": {"dockerfile": "Dockerfile"}, "postCreateCommand": "make all"}',
    ".devcontainer/Dockerfile": "FROM theirs\nRUN make\nCOPY a b\n",
  });
  const { code, stdout, stderr } = await harness(place, ["trust", "--show"]);
  assert.deepEqual([code, stderr], [4, ""]);
  assert.match(stdout, /^[\n -~]*[\u2400-\u2421]?[\n -~\u2400-\u2421\u2026…]*$/u);
  for (const line of [
    "  ! mode: workspace-write -> danger-full-access",
    "  ! chat_model: qwen3:8b -> a<U+202E>b\u241B[2J<U+200B>",
    "    pids: 512 -> 64",
    "  ! runs without asking: frob … (it<U+009B>2J)",
    "  ! runs without asking: the tool tracker__* (r)",
    "  ! adds to what the project's files say: true",
    "  ! starts every box from the image: theirs",
    "  ! installs: libpq-dev",
    "  ! connects to during set-up: npm",
    '  ! runs during set-up: {"run":"make","folder":"."}',
    '  ! runs during set-up: {"run":"make all","folder":"."}',
    "  ! .devcontainer/Dockerfile: RUN make",
    '  ! runs as root in a container without the workspace, while its image is built: {"run":"make","folder":"/","env":{}}',
    "    not taken: COPY a b: the build's context has nothing of this name, or leaves it out",
  ])
    assert.ok(stdout.split("\n").includes(line), `${line}\n${stdout}`);
});

test("without a terminal only the hash that was shown is accepted", async () => {
  await using place = await household({ [SETTINGS]: '{"pids": 1000}' });
  const { hash } = await shown(place);
  const table = [
    [["trust"], "there is no terminal to ask on"],
    [["trust", "--yes", "yes"], "what is here has a different hash"],
    [["trust", "--yes", hash.slice(0, 12)], "what is here has a different hash"],
  ] as const;
  for (const [words, message] of table) {
    const { code, stdout, stderr } = await harness(place, words);
    assert.deepEqual([code, stdout], [2, ""]);
    assert.ok(stderr.startsWith(`error: ${message}\n  next: harness trust --show`), stderr);
    assert.ok(!stderr.includes(hash));
  }
  assert.equal((await harness(place, ["trust", "--yes"])).code, 2);
  await place.write(`work/${SETTINGS}`, '{"pids": 2000}');
  assert.equal((await harness(place, ["trust", "--yes", hash])).code, 2);
  assert.deepEqual(await standings(place), ["new"]);
  await place.write(`work/${SETTINGS}`, '{"pids": 1000}');
  assert.equal((await harness(place, ["trust", "--yes", hash])).code, 0);
  assert.deepEqual(await standings(place), ["trusted"]);
  assert.deepEqual(await readdir(place.at("work")), [".harness"]);
});

test("a change is shown in lines and is no longer trusted, and --revoke forgets the project", async () => {
  await using place = await household({ [SETTINGS]: '{\n  "pids": 1000\n}\n' });
  await trustAll(place);
  await place.write(`work/${SETTINGS}`, '{\n  "pids": 2000\n}\n');
  const [item] = (await shown(place)).items;
  assert.deepEqual(
    [item?.standing, item?.diff],
    [
      "changed",
      [
        `--- ${SETTINGS} (as it was trusted)`,
        `+++ ${SETTINGS}`,
        "@@ -1,3 +1,3 @@",
        " {",
        '-  "pids": 1000',
        '+  "pids": 2000',
        " }",
      ],
    ],
  );
  assert.equal((await configOf(place))["pids"]?.value, 512);
  await trustAll(place);
  assert.equal((await configOf(place))["pids"]?.value, 2000);
  assert.equal((await harness(place, ["trust", "--revoke"])).code, 0);
  assert.deepEqual([await standings(place), (await configOf(place))["pids"]?.value], [["new"], 512]);
});

test("settings with a mistake cannot be trusted, and are ignored before", async () => {
  await using place = await household({ [SETTINGS]: '{"pids": 3}' });
  assert.equal((await configOf(place))["pids"]?.value, 512);
  const { code, stdout } = await harness(place, ["trust", "--show"]);
  assert.equal(code, 4);
  assert.match(stdout, /config\.json:1:10: pids: expected a whole number/);
  assert.equal((await harness(place, ["trust", "--yes", (await shown(place)).hash])).code, 2);
});

test(
  "a person is asked about each item, and a chat does not ask again about a declined one",
  { skip },
  async () => {
    await using place = await household({
      [SETTINGS]: '{"pids": 1000}',
      ".harness/env.json": '{"image": "theirs"}',
    });
    {
      await using terminal = onTerminal(place, ["trust"]);
      await terminal.until(/! pids: 512 -> 1000\n[\s\S]*config\.json, as it is now\? \[y\/N\] $/);
      terminal.type("y\r");
      await terminal.until(/image: theirs\n[\s\S]*env\.json, as it is now\? \[y\/N\] $/);
      terminal.type("\r");
      assert.equal(await terminal.ended, 4);
    }
    assert.deepEqual(await standings(place), ["trusted", "new"]);
    await using chat = onTerminal(place, []);
    assert.match(
      await chat.until(/harness> $/),
      /note: applies only where it tightens: \.harness\/env\.json \(it is not trusted\)/,
    );
  },
);

test("a chat asks once at its start, and again after a change", { skip }, async () => {
  await using place = await household({ [SETTINGS]: '{"mode": "danger-full-access"}' });
  const chats = async (answer: string | undefined, banner: RegExp): Promise<void> => {
    await using chat = onTerminal(place, []);
    if (answer !== undefined) {
      await chat.until(/! mode: workspace-write -> danger-full-access[\s\S]*\[y\/N\] $/);
      chat.type(answer);
    }
    assert.match(await chat.until(/harness> $/), banner);
    chat.type("exit\r");
    assert.equal(await chat.ended, 0);
  };
  await chats("n\r", /\(ollama\) {2}workspace-write/);
  await chats(undefined, /\(ollama\) {2}workspace-write/);
  await place.write(`work/${SETTINGS}`, '{"mode": "danger-full-access" }');
  await chats("y\r", /\(ollama\) {2}danger-full-access/);
  await chats(undefined, /\(ollama\) {2}danger-full-access/);
});

test("Ctrl-C and the end of input do not mean yes", { skip }, async () => {
  for (const [key, code] of [
    ["\u0003", 130],
    ["\u0004", 4],
  ] as const) {
    await using place = await household({ [SETTINGS]: '{"pids": 1000}' });
    await using terminal = onTerminal(place, ["trust"]);
    await terminal.until(/\[y\/N\] $/);
    terminal.type(key);
    assert.equal(await terminal.ended, code, terminal.screen());
    assert.doesNotMatch(terminal.screen(), /internal error/);
    assert.deepEqual(await standings(place), ["new"]);
  }
});

test("an unattended run reports once what is ignored, with the command, and behaves as if it was missing", async () => {
  await using place = await household({ [SETTINGS]: '{"mode": "danger-full-access", "max_turns": 3}' });
  await using model = await startModel([{ text: "Hello." }]);
  const words = ["run", "--json", "--intent", "direct", ...model.flags, "hello"];
  const events = eventsOf(await harness(place, words));
  const told = events.flatMap((event) =>
    event.type === "notice" && event.untrusted !== undefined ? [event] : [],
  );
  assert.deepEqual(
    told.map(({ text, untrusted }) => [text, untrusted]),
    [
      [
        `applies only where it tightens: ${SETTINGS} (it is not trusted); harness trust shows what it would do`,
        [{ kind: "settings", file: SETTINGS, why: "it is not trusted" }],
      ],
    ],
  );
  const started = events.find((event) => event.type === "run.started");
  assert.equal(started?.mode, "workspace-write");
  const lines = await harness(
    place,
    words.filter((word) => word !== "--json"),
  );
  assert.match(lines.stderr, /applies only where it tightens: \.harness\/config\.json/);
  await trustAll(place);
  const after = eventsOf(await harness(place, words));
  assert.equal(after.find((event) => event.type === "run.started")?.mode, "danger-full-access");
  assert.ok(!after.some((event) => event.type === "notice"));
});

test("a session resumed elsewhere uses its own project's settings", async () => {
  await using place = await household({ [SETTINGS]: '{"mode": "read-only"}' });
  await place.write("other/.harness/config.json", '{"mode": "danger-full-access"}');
  const other = { cwd: place.at("other") };
  await trustAll(place, "other");
  await using model = await startModel([{ text: "Hello." }]);
  const words = ["run", "--json", "--intent", "direct", ...model.flags];
  const [first] = eventsOf(await harness(place, [...words, "hello"]));
  assert.ok(first?.type === "run.started" && first.mode === "read-only");
  const [again] = eventsOf(await harness(place, [...words, "--resume", first.session, "hello"], other));
  assert.deepEqual(again?.type === "run.started" && again.mode, "read-only");
});

test("doctor reports what is ignored", async () => {
  await using place = await household({ [SETTINGS]: '{"pids": 1000}' });
  const env = { DOCKER_HOST: `unix://${place.at("none.sock")}` };
  const rows = async () => {
    const { stdout } = await harness(place, ["doctor", "--json"], { env });
    const { checks } = JSON.parse(stdout) as { readonly checks: readonly { readonly id: string }[] };
    return checks.filter(({ id }) => id === "project");
  };
  assert.deepEqual(await rows(), [
    {
      id: "project",
      state: "warn",
      detail: `applies only where it tightens: ${SETTINGS} (it is not trusted); harness trust shows what it would do`,
      remedy: "harness trust",
    },
  ]);
  await trustAll(place);
  assert.deepEqual(await rows(), [
    { id: "project", state: "ok", detail: `trusted: ${SETTINGS}`, remedy: "" },
  ]);
});

slowTest("killed at any step it leaves the old record or the new one, and the next call works", async () => {
  await using place = await household({ [SETTINGS]: '{"pids": 1000}' });
  const { hash } = await shown(place);
  for (let at = 1, ended = false; !ended; at += 1) {
    assert.ok(at < 100);
    for (const half of [true, false]) {
      const { code } = await harness(place, ["trust", "--yes", hash], {
        env: killingItself({ kind: "step", at, half }),
      });
      ended = code === 0;
      const { damage, items } = await toldTrust(place);
      assert.equal(damage, null);
      assert.match(items[0]?.standing ?? "", ended ? /^trusted$/ : /^(?:new|trusted)$/);
      await trustNothing(place);
    }
  }
  assert.equal((await harness(place, ["trust", "--yes", hash])).code, 0);
});

const rule = (name: string, decision: string): string =>
  `[[rule]]\nprefix = ["${name}"]\ndecision = "${decision}"\nreason = "ours"\nmatch = ["${name}"]\n`;

test("a project's rule that allows applies once it is trusted, one that refuses applies at once", async () => {
  await using place = await household({ ".harness/policy.toml": rule("frob", "allow") + rule("ls", "deny") });
  const verdicts = () =>
    Promise.all(
      ["frob", "ls"].map(async (command) => (await harness(place, ["policy", "check", "--", command])).code),
    );
  assert.deepEqual(await verdicts(), [10, 20]);
  await trustAll(place);
  assert.deepEqual(await verdicts(), [0, 20]);
});
