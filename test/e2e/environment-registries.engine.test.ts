// slow: it builds an environment with toolchains of the distribution
import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import test from "node:test";
import { type Ended, runProgram } from "../fixtures/cli.ts";
import { debianImage } from "../fixtures/debian-image.ts";
import { skip } from "../fixtures/engine.ts";
import { httpsStub, noCertificates } from "../fixtures/https-stub.ts";
import type { Scratch } from "../fixtures/scratch.ts";
import { kindOf, type Pages, thingPages, VERSION } from "../fixtures/thing-registry.ts";
import { household, sandboxExec } from "./box-command.ts";

/*
 * From a project's files to its own code in the offline box, as in a company's network: the way out is a proxy, the
 * registry has an authority that the host's variables name, and neither is known to the box.
 */

const HOST = "registry.test";
const pages: Pages = thingPages(HOST);

interface Network extends AsyncDisposable {
  readonly env: Readonly<Record<string, string>>;
  /** What the registry was asked for. */
  readonly asked: readonly string[];
  /** Neither is there any more. */
  readonly end: () => Promise<void>;
}

async function network(place: Scratch): Promise<Network> {
  const asked: string[] = [];
  const registry = await httpsStub([HOST], ({ url = "" }, response) => {
    asked.push(url);
    const page = pages[url.split("?")[0] ?? ""];
    response.writeHead(page === undefined ? 404 : 200, { "content-type": kindOf(url) });
    response.end(page);
  });
  const proxy = createServer((_, response) => response.writeHead(403).end());
  proxy.on("connect", (_, client, head) => {
    const to = connect(registry.port, "127.0.0.1", () => {
      client.write("HTTP/1.1 200 OK\r\n\r\n");
      to.write(head);
      client.pipe(to).pipe(client);
    });
    to.on("error", () => client.destroy());
    client.on("error", () => to.destroy());
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const state = { ended: false };
  const end = async (): Promise<void> => {
    if (state.ended) return;
    state.ended = true;
    proxy.closeAllConnections();
    proxy.close();
    await registry[Symbol.asyncDispose]();
  };
  const port = String((proxy.address() as AddressInfo).port);
  const authority = await place.write("authority.pem", registry.authority);
  return {
    env: { HTTPS_PROXY: `http://127.0.0.1:${port}`, NODE_EXTRA_CA_CERTS: authority },
    asked,
    end,
    [Symbol.asyncDispose]: end,
  };
}

interface Project {
  readonly name: string;
  readonly packages: readonly string[];
  readonly files: Readonly<Record<string, string>>;
  /** Where its dependencies go. */
  readonly folder: string;
  /** As it is detected. */
  readonly setup: string;
  /** What runs the project, without a network. */
  readonly runs: string;
  readonly asks: readonly string[];
}

const dist = {
  type: "zip",
  url: `https://${HOST}/composer/files/thing.zip`,
  reference: "abc",
  shasum: "",
};
const locked = { name: "test/thing", version: VERSION, type: "library", dist };

const PROJECTS: readonly Project[] = [
  {
    name: "composer",
    packages: ["composer", "php-cli", "php-curl", "php-mbstring", "php-xml", "php-zip"],
    files: {
      "composer.json": JSON.stringify({
        repositories: [{ type: "composer", url: `https://${HOST}/composer` }, { "packagist.org": false }],
        require: { "test/thing": "^1.2" },
      }),
      "composer.lock": JSON.stringify({
        "content-hash": "0".repeat(32),
        packages: [{ ...locked, autoload: { files: ["thing.php"] } }],
        "packages-dev": [],
        aliases: [],
        "minimum-stability": "stable",
        "stability-flags": [],
        "prefer-stable": false,
        "prefer-lowest": false,
        platform: [],
        "platform-dev": [],
      }),
    },
    folder: "vendor",
    setup: "composer install --no-interaction --no-progress --no-scripts --no-plugins",
    runs: `php -r 'require "vendor/autoload.php"; echo THING, "\\n";'`,
    asks: ["/composer/files/thing.zip"],
  },
  {
    name: "bundler",
    packages: ["ruby", "bundler"],
    files: {
      Gemfile: `source "https://${HOST}/gems"\ngem "thing", "~> 1.2"\n`,
      "Gemfile.lock": `GEM\n  remote: https://${HOST}/gems/\n  specs:\n    thing (${VERSION})\n\nPLATFORMS\n  ruby\n\nDEPENDENCIES\n  thing (~> 1.2)\n\nBUNDLED WITH\n   2.3.15\n`,
    },
    folder: "vendor/bundle",
    setup: "BUNDLE_FROZEN=true bundle install",
    runs: `bundle exec ruby -e 'require "thing"; puts THING'`,
    asks: [`/gems/gems/thing-${VERSION}.gem`],
  },
];

for (const { name, packages, files, folder, setup, runs, asks } of PROJECTS)
  test(
    `${name}'s packages are installed through the company's proxy, and available without a network`,
    { skip: skip || noCertificates },
    async (t) => {
      const own = await debianImage(name, packages);
      if ("missing" in own) return t.skip(own.missing);
      await using _ = own;
      await using place = await household({
        ...files,
        ".devcontainer/devcontainer.json": JSON.stringify({ image: own.name, postCreateCommand: setup }),
        [`${folder}/mine.txt`]: "the host's",
      });
      await using outside = await network(place);
      const { env, asked } = outside;
      const harness = (...words: readonly string[]): Promise<Ended> =>
        runProgram("bin/harness", words, { home: place.path, cwd: place.at("work"), env });
      const detected = await harness("env", "show");
      assert.ok(detected.stdout.includes(`set-up: ${setup}`), `it is what is detected: ${detected.stdout}`);
      assert.match(detected.stdout, new RegExp(`--allow-domain ${HOST}`));
      const { hash } = JSON.parse((await harness("trust", "--show", "--json")).stdout) as { hash: string };
      assert.equal((await harness("trust", "--yes", hash)).code, 0);
      try {
        const refused = await harness("env", "build");
        assert.equal(refused.code, 1, refused.stderr);
        assert.match(refused.stderr, /set-up failed/);
        assert.equal(asked.length, 0, "nobody granted it");
        const built = await harness("env", "build", "--allow-domain", HOST, "--json");
        assert.equal(built.code, 0, built.stdout + built.stderr);
        for (const each of asks) assert.ok(asked.includes(each), asked.join(" "));
        const { installed } = JSON.parse(built.stdout) as {
          readonly installed: { readonly packages: readonly object[] };
        };
        assert.match(JSON.stringify(installed), /"name":"(?:test\/)?thing","version":"1\.2\.3"/);
        await outside.end();
        const ran = await sandboxExec(place, ["--", "sh", "-c", `${runs}; ls ${folder}/mine.txt`]);
        assert.equal(ran.stdout.toString(), `${VERSION}\n`, ran.stderr);
        assert.deepEqual(
          await readdir(place.at("work", folder)),
          ["mine.txt"],
          "the host's own is untouched",
        );
      } finally {
        await harness("env", "rm", "--all");
      }
    },
  );
