// slow: it clones from many kinds of addresses; vet.engine.test.ts has one
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import path from "node:path";
import test from "node:test";
import { promisify } from "node:util";
import type { VetReport } from "../../src/core/behaviour.ts";
import { makeSessionAuthority } from "../../src/docker/egress/tls-ending.ts";
import { skip } from "../fixtures/engine.ts";
import { gitBackend } from "../fixtures/git-backend.ts";
import { household } from "./box-command.ts";
import { harness } from "./run-command.ts";

const run = promisify(execFile);

const words = (address: string, granted: readonly string[]): readonly string[] => [
  "vet",
  "--json",
  ...granted.flatMap((each) => ["--allow-domain", each]),
  address,
  "--",
  "sh",
  "-c",
  "cat a.txt; ls sub",
];

const OWN = {
  GIT_CONFIG_COUNT: "1",
  GIT_CONFIG_KEY_0: "safe.directory",
  GIT_CONFIG_VALUE_0: "*",
};

/** On the host's loopback, behind TLS that only the user's own settings trust. */
async function serving(
  authority: ReturnType<typeof makeSessionAuthority>,
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<{ readonly port: number; readonly asked: string[] } & AsyncDisposable> {
  const asked: string[] = [];
  const server = createServer({ SNICallback: (_, give) => give(null, authority.contextFor("localhost")) });
  server.on("request", (request: IncomingMessage, response: ServerResponse) => {
    asked.push(request.url ?? "");
    answer(request, response);
  });
  server.on("connection", () => asked.push("connected"));
  server.listen(0, "localhost");
  await once(server, "listening");
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : 0,
    asked,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

test(
  "an address is cloned from its host alone, over git or as plain files, and redirects reach nothing else",
  { skip },
  async () => {
    await using place = await household();
    const root = place.at("served");
    const authority = makeSessionAuthority();
    await place.write("ca.pem", authority.pem);
    await using other = await serving(authority, (_, response) => void response.end("no"));
    await using host = await serving(authority, (request, response) => {
      const { url = "" } = request;
      if (url.startsWith("/port/"))
        return void response.writeHead(302, { Location: `https://localhost:${other.port}${url}` }).end();
      if (url.startsWith("/name/"))
        return void response.writeHead(302, { Location: `https://elsewhere.test${url}` }).end();
      if (url.startsWith("/same/"))
        return void response.writeHead(302, { Location: url.slice("/same".length) }).end();
      if (!url.startsWith("/plain/")) return gitBackend(root, request, response);
      const file = new URL(url, "https://localhost").pathname.slice("/plain".length);
      readFile(path.join(root, file)).then(
        (bytes) => response.end(bytes),
        () => response.writeHead(404).end(),
      );
    });
    const at = place.at("source");
    const git = (...words: readonly string[]) =>
      run("git", ["-c", "user.name=a", "-c", "user.email=a@example.test", ...words], {
        cwd: at,
        env: { ...OWN, PATH: process.env["PATH"], HOME: place.path },
      });
    await place.write("source/a.txt", "one\n");
    await place.write(
      "source/.gitmodules",
      `[submodule "sub"]\n\tpath = sub\n\turl = https://localhost:${other.port}/sub.git\n`,
    );
    await git("init", "-q", "-b", "main");
    await git("add", "-A");
    await git("update-index", "--add", "--cacheinfo", `160000,${"1".repeat(40)},sub`);
    await git("commit", "-q", "-m", "one");
    await git("checkout", "-q", "-b", "other");
    await git("commit", "-q", "--allow-empty", "-m", "two");
    await git("checkout", "-q", "main");
    await git("clone", "-q", "--bare", ".", `${root}/repo.git`);
    await git("--git-dir", `${root}/repo.git`, "update-server-info");
    const commits = await Promise.all(
      ["main", "other"].map(async (name) => (await git("rev-parse", name)).stdout.trim()),
    );
    const env = { NODE_EXTRA_CA_CERTS: place.at("ca.pem") };
    const base = `https://localhost:${host.port}`;
    const vet = (address: string, granted = [`localhost:${host.port}:private`]) =>
      harness(place, words(address, granted), { env });
    const cloned = [
      ["/repo.git", commits[0]],
      ["/repo.git#other", commits[1]],
      [`/repo.git#${commits[1]}`, commits[1]],
      ["/plain/repo.git", commits[0]],
      ["/same/repo.git", commits[0]],
    ] as const;
    for (const [name, commit] of cloned) {
      const ran = await vet(`${base}${name}`);
      assert.match(ran.stdout, /^\{"verdict"/, `${name}: ${ran.stdout}${ran.stderr}`);
      const { repository, steps, findings } = JSON.parse(ran.stdout) as VetReport;
      assert.deepEqual([repository.kind, repository.commit, steps[0]?.output], ["git", commit, "one"], name);
      assert.ok(!findings.some(({ rule }) => rule === "unpack.elsewhere"));
    }
    const refused = [
      ["/port/repo.git", new RegExp(`redirects to localhost:${other.port}, which was not named`)],
      ["/name/repo.git", /redirects to elsewhere\.test:443, which was not named/],
      ["/none.git", /not found/],
    ] as const;
    for (const [name, why] of refused) {
      const ran = await vet(`${base}${name}`);
      assert.equal(ran.code, 2, ran.stdout);
      assert.match(ran.stdout, why);
    }
    const nowhere = await vet("https://nowhere.invalid/x.git", []);
    assert.equal(nowhere.code, 2, nowhere.stdout);
    assert.match(nowhere.stdout, /nowhere\.invalid has no address here/);
    // This machine's own name says what it is.
    const own = await vet(`${base}/repo.git`, []);
    assert.equal(own.code, 0, own.stdout);
    assert.deepEqual(other.asked, []);
  },
);
