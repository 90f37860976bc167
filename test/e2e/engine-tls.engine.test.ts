// also slow: a run and its session by a docker context
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { copyFile } from "node:fs/promises";
import { type AddressInfo, connect, type Socket } from "node:net";
import path from "node:path";
import test from "node:test";
import { createServer } from "node:tls";
import { runProgram } from "../fixtures/cli.ts";
import { engine } from "../fixtures/engine-api.ts";
import { skip } from "../fixtures/engine.ts";
import { giveAway } from "../fixtures/give-away.ts";
import { makeCertificates, noCertificates } from "../fixtures/https-stub.ts";
import { scratch, type Scratch } from "../fixtures/scratch.ts";
import { FINE } from "./parked.ts";
import { bash, finishedOf, harness, startModel } from "./run-command.ts";
import { slowTest } from "../fixtures/slow-test.ts";

const socket =
  skip === false && engine.endpoint.host.startsWith("unix://") ? engine.endpoint.host.slice(7) : undefined;
const why =
  skip || noCertificates || (socket === undefined && "the engine here has no socket to stand behind");

/** The engine of this machine behind TLS, which requires a client certificate, as a remote one does. */
async function engineBehindTls(place: Scratch): Promise<AsyncDisposable & { readonly address: string }> {
  const folder = place.at("certs");
  await place.write("certs/README", "");
  makeCertificates(folder, ["IP:127.0.0.1"]);
  for (const [from, to] of [
    ["own.key", "key.pem"],
    ["own.pem", "cert.pem"],
  ] as const)
    await copyFile(path.join(folder, from), path.join(folder, to));
  const open = new Set<Socket>();
  const pem = (name: string): Promise<string> => place.read(`certs/${name}`);
  const [key, cert, ca] = [await pem("own.key"), await pem("own.pem"), await pem("ca.pem")];
  const server = createServer({ key, cert, ca, requestCert: true, allowHalfOpen: true }, (client) => {
    const behind = connect({ path: socket ?? "", allowHalfOpen: true });
    open.add(behind);
    for (const each of [client, behind])
      each.on("error", () => [client, behind].forEach((both) => both.destroy()));
    client.pipe(behind).pipe(client);
  });
  // Connections of a client that does not trust this authority never complete TLS.
  server.on("connection", (raw: Socket) => open.add(raw));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    address: `tcp://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      for (const each of open) each.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

test(
  "a command runs on an engine with TLS, and a server of another authority is refused",
  { skip: why },
  async () => {
    await using place = await scratch();
    await using behind = await engineBehindTls(place);
    await place.write("work/a.txt", "sent along\n");
    const words = [
      "sandbox",
      "exec",
      "--engine",
      behind.address,
      "--isolation",
      "copy",
      "--",
      "cat",
      "a.txt",
    ];
    const run = (folder: string) =>
      runProgram("bin/harness", words, {
        home: place.path,
        cwd: place.at("work"),
        env: { DOCKER_TLS_VERIFY: "1", DOCKER_CERT_PATH: folder },
      });
    const ran = await run(place.at("certs"));
    assert.deepEqual([ran.code, ran.stdout], [0, "sent along\n"], ran.stderr);

    await place.write("others/README", "");
    makeCertificates(place.at("others"), ["IP:127.0.0.1"]);
    for (const name of ["key.pem", "cert.pem"])
      await copyFile(path.join(place.at("certs"), name), path.join(place.at("others"), name));
    const refused = await run(place.at("others"));
    assert.deepEqual([refused.code, refused.stdout], [125, ""], refused.stderr);
    assert.match(refused.stderr, /certificate/);
  },
);

slowTest(
  "a session's changes on the engine of a docker context are found with the context's certificates",
  { skip: why },
  async () => {
    await using place = await scratch();
    await using behind = await engineBehindTls(place);
    await place.write("work/a.txt", "one\n");
    await giveAway(place.at("work"));
    const id = createHash("sha256").update("lab").digest("hex");
    const meta = { Name: "lab", Endpoints: { docker: { Host: behind.address } } };
    await place.write(`.docker/contexts/meta/${id}/meta.json`, JSON.stringify(meta));
    const tls = `.docker/contexts/tls/${id}/docker`;
    await place.write(`${tls}/README`, "");
    for (const name of ["ca.pem", "cert.pem", "key.pem"])
      await copyFile(path.join(place.at("certs"), name), path.join(place.at(tls), name));
    await using model = await startModel((chat) =>
      chat.messages.at(-1)?.role === "tool" ? FINE : bash("cat b.txt; echo two >> b.txt"),
    );
    const start = { env: { DOCKER_HOST: "unix:///run/none.sock" } };
    const run = (...words: readonly string[]) =>
      harness(place, ["run", "--json", ...model.flags, ...words], start);
    const first = await run("--engine", "lab", "do it");
    assert.equal(finishedOf(first).status, "done", first.stdout + first.stderr);
    const again = await run("--continue", "do it");
    assert.equal(finishedOf(again).status, "done", again.stdout + again.stderr);
    const diff = await harness(place, ["diff"], start);
    assert.match(diff.stdout, /^\+two\n\+two$/m, diff.stderr);
    const removed = await harness(place, ["sessions", "rm", finishedOf(first).session], start);
    assert.equal(removed.code, 0, removed.stderr);
  },
);
