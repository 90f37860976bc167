import assert from "node:assert/strict";
import test from "node:test";
import { look } from "./cluster-api.ts";
import { type BoxPlace, boxPlace } from "./cluster-boxes.ts";
import { attached, type Cluster } from "./cluster.ts";
import { built, type EnvironmentUser, FILES, LOOK, SEEN, withEnvironment } from "./pod-environment.ts";

/** Environments on a real cluster, whose node gets an environment's image only from a registry. */

const cluster: Cluster = await attached(process.env["HARNESS_TEST_KUBERNETES"] ?? "tests");
const { api, image, kubeconfig } = cluster;
const skip = cluster.network !== "enforced" && `boxes need a network that is shut: it is ${cluster.network}`;

/** The images of the pods of the namespace, as the pods appear. */
function imagesIn({ pods }: BoxPlace["space"]): Disposable & { readonly all: readonly string[] } {
  const all: string[] = [];
  const leaving = new AbortController();
  void (async () => {
    for await (const { type, object } of api.watch(`${pods}?watch=1`, leaving.signal))
      if (type === "ADDED") all.push(String(look(object, "spec", "containers", 0, "image")));
  })().catch(() => undefined);
  return { all, [Symbol.dispose]: () => leaving.abort() };
}

const loginSecret = ({ registry }: EnvironmentUser, username: string, password: string): object => {
  const auths = { [registry.host]: { username, password } };
  return {
    metadata: { name: "pulls" },
    type: "kubernetes.io/dockerconfigjson",
    stringData: { ".dockerconfigjson": JSON.stringify({ auths }) },
  };
};

test(
  "an environment that was built here and pushed is pulled by the node by digest, with the pod's own login",
  { skip },
  async () => {
    await using place = await boxPlace(cluster, { files: FILES });
    using images = imagesIn(place.space);
    const engine = `kubernetes:/${place.space.name}`;
    await withEnvironment({ place, kubeconfig, engine, image }, async (user) => {
      const { type, registry, configure, login, change } = user;
      await cluster.letNodeOut(Number(registry.host.split(":")[1]));
      const repository = `${registry.host}/team/env`;
      const [name, password] = ["me", "s3cr3t-word"];
      registry.login = { username: name, password };
      await login(name, password);
      await configure({ registry: repository });
      const first = await built(user);
      const digest = [...registry.tags.values()].at(-1);
      assert.deepEqual([first.pushed?.how, first.pushed?.image], ["pushed", `${repository}@${digest}`]);

      const barred = await type("sandbox", "exec", "--", "true");
      assert.equal(barred.code, 125);
      assert.match(barred.stderr, /image cannot be pulled/);
      const secrets = `/api/v1/namespaces/${place.space.name}/secrets`;
      await api.must("POST", secrets, loginSecret(user, name, password));
      await configure({ registry: repository, pull_secret: "pulls" });
      const before = registry.heard.length;
      const looked = await type("sandbox", "exec", "--", "sh", "-c", LOOK);
      assert.deepEqual([looked.code, looked.stdout], [0, SEEN], looked.stderr);
      assert.equal(images.all.at(-1), `${repository}@${digest}`);
      assert.ok(registry.heard.slice(before).some((each) => each.startsWith("GET /v2/team/env/blobs/")));
      const doctor = await type("doctor");
      assert.match(doctor.stdout, new RegExp(`^ok +environment +${repository}@${digest}$`, "m"));
      assert.match(doctor.stdout, /^ok +box +verified in /m);

      await change({ env: { FLAVOUR: "y" } });
      const second = await built(user);
      assert.notEqual(second.pushed?.image, first.pushed?.image);
      const renewed = await type("sandbox", "exec", "--", "sh", "-c", 'greet; echo "$FLAVOUR"');
      assert.deepEqual([renewed.code, renewed.stdout], [0, "hello\ny\n"], renewed.stderr);
      assert.equal(images.all.at(-1), second.pushed?.image);
      const plain = await type("sandbox", "exec", "--env", "none", "--", "sh", "-c", "ls deps; greet");
      assert.deepEqual([plain.code, plain.stdout, images.all.at(-1)], [127, "mine.txt\n", image]);
    });
    assert.deepEqual([await place.named("pods"), await place.named("networkpolicies")], [[], []]);
  },
);
