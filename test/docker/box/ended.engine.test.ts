import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import test from "node:test";
import type Docker from "dockerode";
import type { Engine } from "../../../src/docker/engine.ts";
import { engine } from "../../fixtures/engine-api.ts";
import { skip } from "../../fixtures/engine.ts";
import { scratch } from "../../fixtures/scratch.ts";
import { standingBoxes } from "../../fixtures/standing-boxes.ts";
import { openBox } from "./open-box.ts";

/** Many processes keep writing after their command, ignoring signals to end. */
const WRITER =
  "trap '' TERM HUP INT; for n in $(seq 20); do (while :; do echo x >> grows; done) & done; sleep 0.2";

const isRunning = (pid: number): boolean => {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
};

interface Tampered {
  readonly engine: Engine;
  /** How often it was asked to remove this one; a start also removes what others have left on the machine. */
  readonly removalsOf: (id: string | undefined) => number;
}

/** The engine, which tells what it was asked to remove, and answers a look at a container in this way. */
function tampered(seen: (found: Docker.ContainerInspectInfo) => Docker.ContainerInspectInfo): Tampered {
  const removals: string[] = [];
  const getContainer = (id: string): Docker.Container => {
    const container = engine.api.getContainer(id);
    return Object.assign(container, {
      inspect: async (...given: []) => seen(await engine.api.getContainer(id).inspect(...given)),
      remove: async (...given: []) => {
        removals.push(id);
        await engine.api.getContainer(id).remove(...given);
      },
    });
  };
  const createContainer = async (options: Docker.ContainerCreateOptions): Promise<Docker.Container> =>
    getContainer((await engine.api.createContainer(options)).id);
  const api = new Proxy(engine.api, {
    get: (target, name) => {
      if (name === "getContainer") return getContainer;
      if (name === "createContainer") return createContainer;
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
  return {
    engine: { ...engine, api },
    removalsOf: (wanted) => removals.filter((id) => id === wanted).length,
  };
}

test(
  "when a box's end is reported nothing of it runs any more, and the engine removes it by itself",
  { skip },
  async () => {
    await using place = await scratch();
    await place.write("w/grows", "");
    const { engine: asked, removalsOf } = tampered((found) => found);
    const opened = await openBox(place, { isolation: "bind", keep: "session" }, { engine: asked });
    await opened.sh(WRITER);
    const label = `dev.harness.workspace=${place.at("w")}`;
    const [box] = await standingBoxes(label);
    const { State } = await engine.api.getContainer(box?.Id ?? "").inspect();
    assert.ok(isRunning(State.Pid));
    await opened.box[Symbol.asyncDispose]();
    assert.equal(isRunning(State.Pid), false);
    const after = await readFile(place.at("w/grows"));
    assert.ok(after.length > 0);
    assert.deepEqual([await standingBoxes(label), removalsOf(box?.Id), opened.warnings], [[], 0, []]);
    assert.deepEqual(await readFile(place.at("w/grows")), after, "it wrote after its end");
  },
);

test("a box whose end cannot be observed is removed before its end is reported", { skip }, async () => {
  await using place = await scratch();
  await place.write("w/a", "");
  const { engine: asked, removalsOf } = tampered((found) => ({
    ...found,
    State: { ...found.State, Pid: 0 },
  }));
  const opened = await openBox(place, { isolation: "bind", keep: "session" }, { engine: asked });
  await opened.sh("true");
  const filters = { label: [`dev.harness.workspace=${place.at("w")}`] };
  const [box] = await engine.api.listContainers({ all: true, filters });
  assert.ok(box);
  await opened.box[Symbol.asyncDispose]();
  assert.deepEqual(await engine.api.listContainers({ all: true, filters }), []);
  assert.equal(removalsOf(box.Id), 1);
});

test("a box that does not exit is removed after a short wait", { skip }, async () => {
  await using place = await scratch();
  await place.write("w/a", "");
  const opened = await openBox(place, { isolation: "bind", keep: "session" });
  await opened.sh("true");
  const filters = { label: [`dev.harness.workspace=${place.at("w")}`] };
  const [box] = await engine.api.listContainers({ all: true, filters });
  assert.ok(box);
  await engine.api.getContainer(box.Id).pause();
  await opened.box[Symbol.asyncDispose]();
  assert.deepEqual(await engine.api.listContainers({ all: true, filters }), []);
});

test("after a single command no container is left in the engine's list", { skip }, async () => {
  await using place = await scratch();
  await place.write("w/a", "");
  const opened = await openBox(place, { isolation: "bind" });
  await opened.sh("true");
  await opened.box[Symbol.asyncDispose]();
  const filters = { label: [`dev.harness.workspace=${place.at("w")}`] };
  assert.deepEqual(await engine.api.listContainers({ all: true, filters }), []);
});
