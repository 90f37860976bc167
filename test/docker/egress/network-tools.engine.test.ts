import assert from "node:assert/strict";
import type { RequestListener } from "node:http";
import test, { after, before } from "node:test";
import { parseGrant } from "../../../src/core/network.ts";
import type { ExecResult } from "../../../src/core/ports.ts";
import { skip } from "../../fixtures/engine.ts";
import { type HttpsStub, httpsStub, noCertificates } from "../../fixtures/https-stub.ts";
import { realBox } from "../../fixtures/real-box.ts";

const HOST = "registry.test";
const HASH = "9".repeat(40);

/** What a registry of packages, a git server over plain files and a web server answer. */
const PAGES: Readonly<Record<string, string>> = {
  "/hello": "hello",
  "/thing": JSON.stringify({
    name: "thing",
    "dist-tags": { latest: "1.2.3" },
    versions: { "1.2.3": { name: "thing", version: "1.2.3", dist: { tarball: "", shasum: "" } } },
  }),
  "/a/b.git/info/refs": `${HASH}\trefs/heads/main\n`,
  "/a/b.git/HEAD": "ref: refs/heads/main\n",
};

const asked: string[] = [];
const answer: RequestListener = ({ url = "" }, response) => {
  asked.push(url);
  const page = PAGES[url.split("?")[0] ?? ""];
  response.statusCode = page === undefined ? 404 : 200;
  response.end(page);
};

const shared: { stub?: HttpsStub; box?: Awaited<ReturnType<typeof realBox>> } = {};
const noTools = skip || noCertificates;

before(async () => {
  if (noTools) return;
  const stub = await httpsStub([HOST], answer);
  shared.stub = stub;
  const grants = [parseGrant(`${HOST}:private`)];
  const network = { grants, trust: () => Promise.resolve(stub.authority), ...stub.found };
  shared.box = await realBox({}, { network });
});
after(async () => {
  await shared.box?.[Symbol.asyncDispose]();
  await shared.stub?.[Symbol.asyncDispose]();
});

async function ran(line: string): Promise<{ readonly out: string; readonly result: ExecResult }> {
  const { box } = shared.box ?? {};
  if (box === undefined) throw new Error("no box");
  const request = { words: ["bash", "-c", line], timeoutMs: 60_000, keep: { head: 2 ** 16, tail: 0 } };
  const result = await box.exec(request, AbortSignal.timeout(60_000));
  return { out: Buffer.concat([result.stdout.head, result.stderr.head]).toString("utf8"), result };
}

/** One connection by each tool of the image as it is, with no option that names a proxy or a certificate. */
const TOOLS: readonly (readonly [tool: string, line: string, said: RegExp, path: string])[] = [
  ["curl", `curl -sS https://${HOST}/hello`, /^hello$/, "/hello"],
  [
    "node's fetch",
    `node -e 'fetch("https://${HOST}/hello").then((r) => r.text()).then(console.log)'`,
    /^hello\n$/,
    "/hello",
  ],
  [
    "node's https",
    `node -e 'require("https").get("https://${HOST}/hello", (r) => r.pipe(process.stdout))'`,
    /^hello$/,
    "/hello",
  ],
  [
    "python's urllib",
    `python3 -c 'import urllib.request as u; print(u.urlopen("https://${HOST}/hello").read())'`,
    /^b'hello'\n$/,
    "/hello",
  ],
  ["npm", `npm view thing version --registry https://${HOST}/`, /^1\.2\.3\n$/, "/thing"],
  [
    "git",
    `git ls-remote https://${HOST}/a/b.git`,
    new RegExp(`^${HASH}\\trefs/heads/main$`, "m"),
    "/a/b.git/info/refs",
  ],
  [
    "git by an address of ssh",
    `git ls-remote git@${HOST}:a/b.git && git ls-remote ssh://git@${HOST}/a/b.git`,
    new RegExp(`(${HASH}\\trefs/heads/main\\n[^]*){2}`),
    "/a/b.git/info/refs",
  ],
];

for (const [tool, line, said, path] of TOOLS)
  test(
    `${tool} gets what was granted, with the same output as without a box`,
    { skip: noTools },
    async () => {
      asked.length = 0;
      const { out, result } = await ran(line);
      assert.match(out, said);
      assert.equal(result.exit_code, 0);
      assert.ok(
        asked.some((url) => url.startsWith(path)),
        asked.join(" "),
      );
      assert.deepEqual(result.blocked_connections, []);
    },
  );

test("apt reads its settings from the network's folder", { skip: noTools }, async () => {
  const { out } = await ran("apt-config dump Acquire::https");
  assert.match(out, /Acquire::https::Proxy "http:\/\/127\.0\.0\.1:3128";/);
  assert.match(out, /Acquire::https::CAInfo "\/run\/harness\/ca\.pem";/);
});

test(
  "another host is refused and listed once on the result, however often it is tried",
  { skip: noTools },
  async () => {
    const { out, result } = await ran(
      "curl -sS https://elsewhere.test/; curl -sS https://elsewhere.test/; curl -sS http://plain.test/",
    );
    assert.match(out, /(response 403[^]*){2}/);
    const told = result.blocked_connections?.map(({ host, port, rule, times }) => [host, port, rule, times]);
    assert.deepEqual(told, [
      ["elsewhere.test", 443, "not-granted", 2],
      ["plain.test", 80, "not-granted", 1],
    ]);
    assert.match(result.blocked_connections?.[0]?.reason ?? "", /--allow-domain elsewhere\.test/);
  },
);

test("refusals of one command are not reported with the next", { skip: noTools }, async () => {
  await ran("curl -sS https://elsewhere.test/");
  const { result } = await ran(`curl -sS https://${HOST}/hello`);
  assert.deepEqual(result.blocked_connections, []);
});

test("a server inside the box is reached without the proxy", { skip: noTools }, async () => {
  const { out } = await ran(
    "python3 -m http.server 8000 --bind 127.0.0.1 --directory /usr/local/lib/node_modules/npm >/dev/null 2>&1 & " +
      "for i in $(seq 50); do curl -sf http://localhost:8000/LICENSE >/tmp/l && break; sleep 0.1; done; wc -l </tmp/l; kill %1",
  );
  assert.match(out, /^\d+\n$/);
});

test("without grants no port is open and no variable set", { skip }, async () => {
  await using plain = await realBox();
  const line =
    "env | grep -i -E 'proxy|CA_|CERT|JAVA_TOOL'; (exec 3<>/dev/tcp/127.0.0.1/3128) 2>&1; ls /run/harness 2>&1";
  const request = { words: ["bash", "-c", line], timeoutMs: 20_000, keep: { head: 2 ** 16, tail: 0 } };
  const { stdout, ...result } = await plain.box.exec(request, AbortSignal.timeout(20_000));
  const said = Buffer.from(stdout.head).toString("utf8");
  assert.match(said, /Connection refused/);
  assert.match(said, /No such file or directory/);
  assert.doesNotMatch(said, /proxy|JAVA/i);
  assert.ok(!("blocked_connections" in result) && plain.box.network === undefined);
});
