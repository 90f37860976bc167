import assert from "node:assert/strict";
import { copyFile, mkdir } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { podWants } from "../fixtures/pod-request.ts";
import { boxPlace } from "./cluster-boxes.ts";
import { attached, type Cluster } from "./cluster.ts";
import { sh } from "./granted-network.ts";

/** Our own seccomp profile, as a file on the node. */

const cluster: Cluster = await attached(process.env["HARNESS_TEST_KUBERNETES"] ?? "tests");
const skip = cluster.network !== "enforced" && `boxes need a network that is shut: it is ${cluster.network}`;

const wanting = (seccomp: string) => ({ wants: { ...podWants(cluster.image), seccomp } });

/** Each attempt prints ALLOWED if it succeeds: another netlink family, and the setuid bit. */
const TRIES = `python3 -c 'import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 15)' 2>/dev/null && echo ALLOWED netlink
touch x; chmod 4755 x 2>/dev/null && echo ALLOWED setuid
python3 -c 'import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)' && chmod 755 x && echo worked`;

test(
  "a node with our profile runs boxes with its restrictions, and a node without it runs none",
  { skip },
  async () => {
    await using place = await boxPlace(cluster);
    {
      await using usual = await place.open(wanting("RuntimeDefault"));
      assert.equal(
        (await sh(usual, TRIES)).out,
        "ALLOWED netlink\nALLOWED setuid\nworked\n",
        "the usual profile allows them",
      );
    }
    await assert.rejects(
      place.open(wanting("Localhost/harness-none.json")),
      /no pod as a box: no seccomp profile: .*harness-none\.json/,
    );
    assert.deepEqual([await place.named("pods"), await place.named("networkpolicies")], [[], []]);
    const folder = path.join(cluster.folder, "var-lib/kubelet/seccomp");
    await mkdir(folder, { recursive: true });
    await copyFile(
      path.join(import.meta.dirname, "../../sandbox/seccomp.json"),
      path.join(folder, "harness.json"),
    );
    await using box = await place.open(wanting("Localhost/harness.json"));
    assert.equal((await sh(box, TRIES)).out, "worked\n");
  },
);
