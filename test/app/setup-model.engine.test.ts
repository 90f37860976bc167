// also slow: whole set-ups, one after the other
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import test, { after, before } from "node:test";
import { freePort } from "../fixtures/loopback-port.ts";
import { hostFrom } from "../../src/app/host.ts";
import { modelStep } from "../../src/app/setup-model.ts";
import type { SetupContext, StepResult } from "../../src/app/setup-steps.ts";
import { loadConfig } from "../../src/config/load-config.ts";
import { HarnessError } from "../../src/core/errors.ts";
import { downSidecars } from "../../src/docker/sidecar-lifecycle.ts";
import { type SidecarName, type SidecarProject, SIDECARS } from "../../src/docker/sidecars.ts";
import { fakeOllamaImage } from "../docker/sidecar-image.ts";
import { engine } from "../fixtures/engine-api.ts";
import { skip } from "../fixtures/engine.ts";
import { type Scratch, scratch } from "../fixtures/scratch.ts";
import { slowTest } from "../fixtures/slow-test.ts";

const IMAGE = `harness-test-ollama:t${process.pid}`;
const pieces = new AsyncDisposableStack();

before(async () => {
  if (skip === false) pieces.use(await fakeOllamaImage(engine.api, IMAGE));
});
after(() => pieces.disposeAsync());

interface Home extends AsyncDisposable {
  readonly place: Scratch;
  readonly project: SidecarProject<SidecarName>;
  readonly server: string;
  readonly container: string;
  /** One start of this user's, with what it said and what was asked. */
  readonly start: (given?: Partial<SetupContext>) => Promise<Start>;
}

interface Start {
  readonly result: StepResult;
  readonly asked: readonly string[];
  readonly said: readonly string[];
}

/** A user without Ollama, whose sidecar is the service of this name with another image, port and project. */
async function home(image = IMAGE): Promise<Home> {
  const place = await scratch();
  const port = await freePort();
  const { ollama, qdrant } = SIDECARS.services;
  const project: SidecarProject<SidecarName> = {
    name: `harness-test-${randomBytes(4).toString("hex")}`,
    services: {
      qdrant,
      ollama: {
        ...ollama,
        image,
        ports: [{ host: port, container: 11_434 }],
        ...(ollama.healthcheck === undefined
          ? {}
          : { healthcheck: { ...ollama.healthcheck, intervalMs: 500 } }),
      },
    },
  };
  const server = `http://127.0.0.1:${port}`;
  const host = hostFrom({ HOME: place.path, PATH: "/usr/bin:/bin", OLLAMA_HOST: server });
  const start: Home["start"] = async (given = {}) => {
    const [asked, said]: [string[], string[]] = [[], []];
    const config = await loadConfig({
      env: host.env,
      project: undefined,
      flags: new Map(),
    });
    const context: SetupContext = {
      host,
      root: place.path,
      workspace: place.path,
      config,
      signal: new AbortController().signal,
      mayInstall: false,
      yes: false,
      attended: false,
      project,
      onLine: (line) => void said.push(line),
      onAdvance: ({ done = 0, total = 0, now = "" }) => void said.push(`${now}: ${done} of ${total} bytes`),
      confirm: (question) => Promise.resolve((asked.push(question), given.yes ?? false)),
      choose: (question, rows) => {
        asked.push([question, ...rows].join("\n"));
        return Promise.resolve(given.yes === true ? 0 : null);
      },
      ...given,
    };
    return { result: await modelStep(engine, true, context), asked, said };
  };
  return {
    place,
    project,
    server,
    container: `${project.name}-ollama-1`,
    start,
    [Symbol.asyncDispose]: async () => {
      await downSidecars(engine.api, project.name, { volumes: true });
      await place[Symbol.asyncDispose]();
    },
  };
}

const namesOn = async (server: string): Promise<readonly string[]> => {
  const { models } = (await (await fetch(`${server}/api/tags`)).json()) as {
    models: readonly { name: string }[];
  };
  return models.map(({ name }) => name);
};

test(
  "with nobody there and without --yes nothing is started or downloaded, and the remedy says what to type",
  { skip },
  async () => {
    await using user = await home("harness-nowhere.invalid/ollama:1.0.0");
    const { result, said } = await user.start();
    assert.equal(result.state, "stand-in");
    assert.match(result.detail, /^no Ollama answers at \S+, and none is installed; nothing was downloaded$/);
    assert.match(
      result.remedy,
      /^\.\/start\.sh --yes {3}starts it in a container \(image: about 1\.9 GiB\) and loads \S+ \([\d.]+ [GM]iB\); or install Ollama/,
    );
    assert.deepEqual(said, ["starting ollama"]);
    await assert.rejects(engine.api.getContainer(user.container).inspect());
  },
);

test(
  "an image that cannot be pulled is not a failure, and the remedy names the alternative",
  { skip },
  async () => {
    await using user = await home("harness-nowhere.invalid/ollama:1.0.0");
    const { result, asked } = await user.start({ yes: true });
    assert.equal(asked.length, 1);
    assert.match(
      asked[0] ?? "",
      /Start it in a container.*\? The image \S+ is a download of about 1\.9 GiB, once; only this machine can reach it/,
    );
    assert.equal(result.state, "stand-in");
    assert.match(
      result.detail,
      /the sidecar: the image harness-nowhere\.invalid\/ollama:1\.0\.0 is not here and cannot be pulled/,
    );
    assert.match(result.remedy, /^install Ollama from https:\/\/ollama\.com\/download, then: \.\/start\.sh$/);
  },
);

slowTest(
  "from nothing to the sidecar, a fitting model and one for search; after a stop all of it is back without a question",
  { skip },
  async () => {
    await using user = await home();
    const first = await user.start({ yes: true });
    assert.equal(first.result.state, "ok", JSON.stringify(first));
    assert.match(
      first.result.detail,
      /^Ollama 0\.32\.15 at .*; in a container.*; chat_model is (\S+) from now on .*; nomic-embed-text for search$/,
    );
    assert.equal(first.asked.length, 1, "the image is here, so that only the model is asked for");
    const [question = "", ...rows] = (first.asked[0] ?? "").split("\n");
    assert.match(question, /^A run needs a chat model\. These fit [\d.]+ GiB of memory/);
    assert.ok(
      rows.length > 0 && rows.every((row) => / to load, [\d.]+ GiB of memory/.test(row)),
      rows.join("\n"),
    );
    const model = rows[0]?.split(" ")[0] ?? "";
    assert.ok(
      first.said.some((line) => line.startsWith(`${model}: `) && /[1-9]\d* of \d{8} bytes$/.test(line)),
      first.said.join("\n"),
    );
    assert.deepEqual((await namesOn(user.server)).toSorted(), [model, "nomic-embed-text"].toSorted());
    const kept = JSON.parse(await user.place.read(".config/harness/config.json")) as object;
    assert.deepEqual(kept, { chat_model: model });

    const { HostConfig, Mounts, NetworkSettings } = await engine.api.getContainer(user.container).inspect();
    assert.deepEqual(
      [HostConfig.CapDrop, HostConfig.SecurityOpt, HostConfig.Privileged, HostConfig.Memory],
      [["ALL"], ["no-new-privileges:true"], false, 12 * 2 ** 30],
    );
    assert.deepEqual(
      Mounts.map(({ Type, Name, Destination }) => [Type, Name, Destination]),
      [["volume", `${user.project.name}_ollama_models`, "/root/.ollama"]],
    );
    const published = Object.values(NetworkSettings.Ports).flatMap((each) => each ?? []);
    assert.deepEqual(
      published.map(({ HostIp }) => HostIp),
      ["127.0.0.1"],
    );

    const again = await user.start();
    assert.deepEqual([again.result.state, again.asked], ["ok", []]);

    const down = await downSidecars(engine.api, user.project.name, {
      volumes: true,
      keep: ["ollama_models"],
    });
    assert.deepEqual([down.containers, down.volumes], [[user.container], []]);
    const back = await user.start();
    assert.deepEqual([back.result.state, back.asked], ["ok", []], JSON.stringify(back));
    assert.ok(!back.said.some((line) => line.includes("pulling")), "the models were kept");
  },
);

test(
  "Ctrl-C during a download reports what is there, and the next start continues without asking",
  { skip },
  async () => {
    await using user = await home();
    const leave = new AbortController();
    const ended = await user
      .start({
        yes: true,
        signal: leave.signal,
        onAdvance: ({ done = 0 }) => void (done > 0 && leave.abort(new Error("interrupted"))),
      })
      .catch((thrown: unknown) => thrown);
    assert.ok(ended instanceof HarnessError, JSON.stringify(ended));
    assert.equal(ended.exit, 130);
    assert.match(
      ended.message,
      /^the download of \S+ was interrupted; [\d.]+ (?:KiB|MiB) of 9\.5 MiB are kept$/,
    );
    assert.match(ended.remedy, /^\.\/start\.sh {3}continues from there/);

    const nobody = await user.start();
    assert.equal(nobody.result.state, "stand-in");
    assert.match(
      nobody.result.detail,
      /nothing was downloaded; [\d.]+ (?:KiB|MiB) of 9\.5 MiB of it are already here$/,
    );
    assert.match(nobody.result.remedy, /^\.\/start\.sh --yes/);

    const { result, asked, said } = await user.start({ attended: true });
    assert.deepEqual([result.state, asked], ["ok", []], JSON.stringify(result));
    assert.ok(
      said.some((line) => line.endsWith(" are already here; the download continues from there")),
      said.join("\n"),
    );
    const sizes = said.flatMap((line) => /: (\d+) of \d+ bytes$/.exec(line)?.[1] ?? []).map(Number);
    assert.ok((sizes[0] ?? 0) > 0, "it began where the first one ended");
  },
);

slowTest("the user's own model is never replaced by another choice", { skip }, async () => {
  await using user = await home();
  await user.start({ yes: true });
  const { asked, result } = await user.start({
    yes: true,
    host: hostFrom({ HOME: user.place.at("other"), PATH: "/usr/bin:/bin", OLLAMA_HOST: user.server }),
    config: await loadConfig({
      env: { HARNESS_CHAT_MODEL: "own/coder:7b" },
      project: undefined,
      flags: new Map(),
    }),
  });
  assert.equal(result.state, "ok");
  assert.match(asked.join(""), /^The model own\/coder:7b is not on the server\. Load it now\?/);
  assert.ok((await namesOn(user.server)).includes("own/coder:7b"));
});
