import assert from "node:assert/strict";
import { createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import path from "node:path";
import test from "node:test";
import { runProgram } from "../fixtures/cli.ts";
import { holding, service, VALUE } from "../e2e/secret-service.ts";
import { type BoxPlace, boxPlace } from "./cluster-boxes.ts";
import { NODE_ADDRESS } from "./cluster-places.ts";
import { ownSpace, podNamed, saidInPod } from "./cluster-pods.ts";
import { attached, type Cluster } from "./cluster.ts";
import { grantedNetworkCases, hello, openedAt, sh } from "./granted-network.ts";

/** Granted networks on a real cluster: over the stream that its API server and its kubelet carry, beside a network that is shut. */

const cluster: Cluster = await attached(process.env["HARNESS_TEST_KUBERNETES"] ?? "tests");
const { api, image } = cluster;
const skip = cluster.network !== "enforced" && `boxes need a network that is shut: it is ${cluster.network}`;

const kind = { skip, newPlace: () => boxPlace(cluster), devices: ["eth0", "lo"] };
grantedNetworkCases(kind);

test(
  "a box with granted access does not reach an address that other pods reach directly",
  { skip },
  async () => {
    const server = createServer((_, response) => void response.end("HERE\n")).listen(0, "127.0.0.1");
    await once(server, "listening");
    try {
      const port = await cluster.letOut((server.address() as AddressInfo).port);
      const ask = `curl -sS --noproxy '*' -m 3 http://${NODE_ADDRESS}:${port}/ 2>&1`;
      await using space = await ownSpace(api);
      const like = await saidInPod(api, space, podNamed("like", image, { script: ask }));
      assert.deepEqual(like, { code: 0, text: "HERE\n" });
      await using all = await openedAt(kind);
      await using box = await all.place.open(all.wanted);
      await hello(box);
      assert.match((await sh(box, ask)).out, /timed out|Could ?n.t connect|Failed to connect/);
      assert.match((await sh(box, `curl -sS -m 3 http://${NODE_ADDRESS}:${port}/`)).out, /not granted/);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  },
);

/** Runs what a user types in the folder, with these user settings. */
async function typing(
  { place, space }: BoxPlace,
  settings: object,
  env: Readonly<Record<string, string>> = {},
) {
  const kubernetes = { image, start_timeout: "120s" };
  const config = JSON.stringify({ engine: `kubernetes:/${space.name}`, kubernetes, ...settings });
  await place.write("home/.config/harness/config.json", config);
  const start = {
    home: place.at("home"),
    cwd: place.at("project"),
    env: { KUBECONFIG: cluster.kubeconfig, ...env },
  };
  return (...words: readonly string[]) => runProgram("bin/harness", words, start);
}

test(
  "a user's command reaches a granted host with its secret, which no part of the cluster ever holds",
  { skip },
  async () => {
    const { at, pem, asked } = await service();
    await using own = await boxPlace(cluster);
    const env = { API_TOKEN: VALUE, NODE_EXTRA_CA_CERTS: await own.place.write("ca.pem", pem) };
    const type = await typing(own, { secrets: { API_TOKEN: ["localhost"] } }, env);
    const line = `curl -sS --noproxy '' -H "Authorization: Bearer $API_TOKEN" https://${at}/who; env; curl -sS http://elsewhere.test/ > /dev/null`;
    const words = [
      "--json",
      "--allow-domain",
      `${at}:private`,
      "--secret",
      "API_TOKEN",
      "--",
      "sh",
      "-c",
      line,
    ];
    const { code, stdout, stderr } = await type("sandbox", "exec", ...words);
    const answer = JSON.parse(stdout) as {
      readonly stdout: string;
      readonly blocked_connections: readonly { readonly host: string; readonly rule: string }[];
    };
    assert.equal(code, 0, stderr);
    assert.deepEqual(asked, [`Bearer ${VALUE} `], "its host receives the secret");
    assert.match(answer.stdout, /^you said Bearer harness-secret-\w+ /);
    assert.deepEqual(
      answer.blocked_connections.map(({ host, rule }) => [host, rule]),
      [["elsewhere.test", "not-granted"]],
    );
    const kept = path.join(cluster.folder, "etcd");
    for (const folder of [kept, path.join(cluster.folder, "logs")])
      assert.deepEqual(await holding(folder), []);
    const seen = await holding(kept, (text) => text.includes(own.place.at("project")));
    assert.notDeepEqual(seen, [], "etcd holds the box, but not the secret");
    assert.deepEqual([await own.named("pods"), await own.named("networkpolicies")], [[], []]);
  },
);
