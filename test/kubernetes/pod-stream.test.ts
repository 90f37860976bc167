import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import test from "node:test";
import { KubeConfig } from "@kubernetes/client-node";
import { Cluster } from "../../src/kubernetes/cluster.ts";
import { attachTo } from "../../src/kubernetes/connect-box.ts";
import { NEVER } from "../contract/box-words.ts";
import { type ServedSocket, serveSocket } from "../fakes/web-socket.ts";

/** An attached container that records its input, and sends what the test wants. */
async function attached(protocol: string) {
  const given: Buffer[] = [];
  // The pod itself is gone.
  const server = createServer((_, response) => response.writeHead(404).end("{}"));
  const socket = Promise.withResolvers<ServedSocket>();
  const ended = Promise.withResolvers<void>();
  const onMessage = (message: Buffer): void => void given.push(message);
  server.on("upgrade", (request, stream) => {
    socket.resolve(serveSocket(request, stream, protocol, { onMessage, onEnd: ended.resolve }));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as { readonly port: number };
  const config = new KubeConfig();
  config.loadFromClusterAndUser(
    { name: "c", server: `http://127.0.0.1:${port}`, skipTLSVerify: true },
    { name: "u" },
  );
  const stream = await attachTo(new Cluster(config, "team", 0), {
    pod: "pod",
    container: "box",
    signal: NEVER,
  });
  const close = async (): Promise<void> => {
    stream.destroy();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return { stream, given, socket: await socket.promise, ended: ended.promise, [Symbol.asyncDispose]: close };
}

const written = (stream: { write: (bytes: Buffer, done: () => void) => unknown }, bytes: Buffer) =>
  new Promise<void>((resolve) => void stream.write(bytes, resolve));

const pattern = (length: number): Buffer =>
  Buffer.from(Array.from({ length }, (_, index) => (index * 7) % 251));

for (const length of [1, 65_536, 65_537, 65_569, 200_000])
  test(`${length} bytes written at once arrive complete and in order`, async () => {
    await using pod = await attached("v4.channel.k8s.io");
    const bytes = pattern(length);
    await written(pod.stream, bytes);
    await written(pod.stream, Buffer.from("behind"));
    pod.stream.end();
    await pod.ended;
    assert.ok(pod.given.every((message) => message[0] === 0 && message.length <= 65_537));
    const all = Buffer.concat(pod.given.map((message) => message.subarray(1)));
    assert.ok(all.equals(Buffer.concat([bytes, Buffer.from("behind")])));
  });

test("a container's output arrives framed by its stream, and a failed attachment as a message on stderr", async () => {
  await using pod = await attached("v4.channel.k8s.io");
  const messages = [
    Buffer.concat([Buffer.from([1]), Buffer.from("out")]),
    Buffer.from([1]),
    Buffer.concat([Buffer.from([3]), Buffer.from('{"status":"Failure","message":"lost"}')]),
  ];
  for (const message of messages) pod.socket.send(message);
  pod.socket.close();
  const parts = await pod.stream.toArray();
  const all = Buffer.concat(parts as Buffer[]);
  assert.deepEqual(all.subarray(0, 11), Buffer.from([1, 0, 0, 0, 0, 0, 0, 3, ...Buffer.from("out")]));
  assert.equal(all.readUInt8(11), 2);
  assert.match(all.subarray(19).toString(), /"lost"/);
});

test("the end of the input is sent explicitly where the protocol supports it", async () => {
  await using pod = await attached("v5.channel.k8s.io");
  pod.stream.end(Buffer.from("a"));
  while (pod.given.length < 2) await new Promise(setImmediate);
  assert.deepEqual(pod.given, [Buffer.from([0, 97]), Buffer.from([255, 0])]);
  pod.socket.send(Buffer.from([1, 98]));
  const [out] = (await once(pod.stream, "data")) as [Buffer];
  assert.equal(out.subarray(8).toString(), "b");
});
