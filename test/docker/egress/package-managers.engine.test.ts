// slow: it fetches package managers, and starts Java for some
import assert from "node:assert/strict";
import { cp } from "node:fs/promises";
import type { RequestListener } from "node:http";
import test, { after, before } from "node:test";
import { type BlockedConnection, parseGrant, type Preset } from "../../../src/core/network.ts";
import type { ExecResult } from "../../../src/core/ports.ts";
import { REGISTRY_TOOLS, type RegistrySettings } from "../../../src/docker/egress/registry-tools.ts";
import type { NetworkRequest } from "../../../src/docker/egress/box-network.ts";
import { installVariables } from "../../../src/docker/environments/tool-variables.ts";
import { debianImage } from "../../fixtures/debian-image.ts";
import { skip } from "../../fixtures/engine.ts";
import { type HttpsStub, httpsStub, noCertificates } from "../../fixtures/https-stub.ts";
import { type Manager, packageManager } from "../../fixtures/package-managers.ts";
import { imageHolding } from "../../fixtures/own-image.ts";
import { realBox } from "../../fixtures/real-box.ts";
import { scratch } from "../../fixtures/scratch.ts";
import { kindOf, type Pages, thingPages, VERSION } from "../../fixtures/thing-registry.ts";

/*
 * One installation by each manager of packages, pointed by nothing but what a box with presets is given: the variables, the
 * settings in files, and an authority of the session, as presets end TLS. The registries are a stub on loopback.
 */

const HOST = "registry.test";
const OTHER = "elsewhere.test";

const asked: string[] = [];
const pages: Pages = thingPages(HOST);
const answer: RequestListener = ({ url = "" }, response) => {
  asked.push(url);
  const path = url.split("?")[0] ?? "";
  const page = pages[path];
  response.writeHead(page === undefined ? 404 : 200, { "content-type": kindOf(path) });
  response.end(page);
};

/** What a user's tools would say that are set to the stub's registries. */
const TOLD: Readonly<Record<string, string>> = {
  "npm config ls": JSON.stringify({ registry: `https://${HOST}/npm/` }),
  "yarn config get": `https://${HOST}/npm/\n`,
  "pip config list": `global.index-url='https://${HOST}/simple/'\n`,
  "cargo --version": "cargo 1.0.0\n",
  "go env GOPROXY": `https://${HOST}/go\noff\n`,
  "mvn --version": "Apache Maven 3\n",
};
const HOME = {
  ".cargo/config.toml": `[source.crates-io]\nreplace-with = "own"\n[source.own]\nregistry = "sparse+https://${HOST}/index/"\n`,
  ".m2/settings.xml": `<settings><mirrors><mirror><id>own</id><mirrorOf>*</mirrorOf><url>https://${HOST}/maven</url></mirror></mirrors></settings>`,
};
const PRESETS: readonly Preset[] = ["npm", "pip", "cargo", "go", "maven", "apt"];

async function presetNetwork(stub: HttpsStub): Promise<NetworkRequest> {
  await using home = await scratch(HOME);
  const asking = {
    run: (argv: readonly string[]) => Promise.resolve(TOLD[argv.slice(0, 3).join(" ")] ?? null),
    env: { HOME: home.path },
    scratch: home.path,
    workspace: home.path,
    uid: 0,
  };
  const told: readonly RegistrySettings[] = await Promise.all(
    PRESETS.map((preset) => REGISTRY_TOOLS[preset](asking)),
  );
  const rules = installVariables(new Set(PRESETS), { install_scripts: [], min_release_age: 0 }, 0);
  return {
    grants: PRESETS.map((preset) => parseGrant(`${preset}=${HOST}:443:private`)),
    variables: Object.assign({}, ...told.map(({ variables }) => variables), rules) as typeof rules,
    files: Object.assign({}, ...told.map(({ settings }) => settings)) as typeof rules,
    roots: stub.authority,
    trust: () => Promise.resolve(stub.authority),
    ...stub.found,
  };
}

type Real = Awaited<ReturnType<typeof realBox>>;

const shared: { stub?: HttpsStub; real?: Real } = {};
const noTools = skip || noCertificates;
/** Managers are fetched, and some of them start a Java. */
const options = { skip: noTools, timeout: 600_000 };

async function boxOf(image: string | null): Promise<Real> {
  if (shared.stub === undefined) throw new Error("no stub");
  const network = await presetNetwork(shared.stub);
  const limits = { memory: 2 ** 30, cpus: null, pids: 512 };
  return realBox({}, { network, limits, image, watchChanges: false });
}

before(async () => {
  if (noTools) return;
  shared.stub = await httpsStub([HOST], answer);
  shared.real = await boxOf(null);
});
after(async () => {
  await shared.real?.[Symbol.asyncDispose]();
  await shared.stub?.[Symbol.asyncDispose]();
});

interface Ran {
  readonly out: string;
  readonly code: number | null;
  readonly blocked: readonly BlockedConnection[];
}

async function ran({ box }: Real, line: string): Promise<Ran> {
  const words = ["bash", "-c", `set -e; work=$PWD; cd $(mktemp -d)\n${line}`];
  const request = { words, timeoutMs: 180_000, keep: { head: 2 ** 14, tail: 2 ** 14 } };
  const { stdout, stderr, ...result }: ExecResult = await box.exec(request, AbortSignal.timeout(200_000));
  const out = Buffer.concat([stdout.head, stdout.tail, stderr.head, stderr.tail]).toString("utf8");
  return { out, code: result.exit_code, blocked: result.blocked_connections ?? [] };
}

/** Puts managers next to the workspace's files, under these names; returns the reason if one is not available. */
async function put({ place }: Real, wanted: readonly Manager[]): Promise<string | undefined> {
  for (const name of wanted) {
    const got = await packageManager(name);
    if ("missing" in got) return got.missing;
    const to = place.at("work/tools", name.replace(" ", "-"));
    await cp(got.folder, to, { recursive: true, verbatimSymlinks: true, force: false });
  }
  return undefined;
}

interface Case {
  readonly tool: string;
  readonly wants: readonly Manager[];
  /** A shell line in an empty folder of the box; `$work/tools` has the managers. */
  readonly line: string;
  /** What it prints at the end. */
  readonly said: RegExp;
  /** What the registry is asked for. */
  readonly paths: readonly string[];
  /** A line before it that configures the tool for a registry that is not granted. */
  readonly elsewhere: string;
}

const NPM_PATHS = ["/npm/thing", `/npm/thing/-/thing-${VERSION}.tgz`];
const npmCase = (tool: Manager, command: string, variable: string): Case => ({
  tool,
  wants: [tool],
  line: `export npm_config_fetch_retries=0 pnpm_config_fetch_retries=0
echo '{"name":"mine","version":"1.0.0","dependencies":{"thing":"${VERSION}"}}' >package.json
node $work/tools/${tool.replace(" ", "-")}/package/${command}
node -p 'require("thing/package.json").version'`,
  said: /^1\.2\.3$/m,
  paths: NPM_PATHS,
  elsewhere: `export ${variable}=https://${OTHER}/npm/`,
});

const POM = `<project><modelVersion>4.0.0</modelVersion><parent><groupId>test</groupId><artifactId>thing</artifactId><version>${VERSION}</version></parent><artifactId>mine</artifactId><packaging>pom</packaging></project>`;
/** Two short starts of each, on what the other tests leave of the processors: little is worth compiling. */
const JAVA =
  'export JAVA_HOME=$work/tools/java PATH=$work/tools/java/bin:$PATH HOME=$PWD JAVA_TOOL_OPTIONS="$JAVA_TOOL_OPTIONS -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"';

const MAVEN = `/maven/test/thing/${VERSION}/thing-${VERSION}`;
const GRADLE = `${JAVA}
cat >build.gradle <<END
repositories { maven { url "https://\${host:-${HOST}}/maven" } }
configurations { wanted }
dependencies { wanted "test:thing:${VERSION}@jar" }
task get { doLast { configurations.wanted.each { println it.name } } }
END
bash /usr/share/gradle/bin/gradle --no-daemon --quiet -g $PWD/home get`;

const APT = `mkdir -p lists/partial cache/archives/partial
echo "deb [trusted=yes] https://\${host:-${HOST}}/debian ./" >sources.list
: >status
here="-o Dir::State=$PWD -o Dir::State::status=$PWD/status -o Dir::Cache=$PWD/cache -o Dir::Etc::SourceList=$PWD/sources.list -o Dir::Etc::SourceParts=/none -o APT::Sandbox::User= -o Acquire::Retries=0"
apt-get $here -o APT::Update::Error-Mode=any update
apt-cache $here policy thing`;

const CASES: readonly Case[] = [
  npmCase("yarn 1", "bin/yarn.js install --no-lockfile --cache-folder $PWD/cache", "npm_config_registry"),
  npmCase(
    "yarn 4",
    "bin/yarn.js config set nodeLinker node-modules && touch yarn.lock && YARN_ENABLE_IMMUTABLE_INSTALLS=false node $work/tools/yarn-4/package/bin/yarn.js install",
    "YARN_NPM_REGISTRY_SERVER",
  ),
  npmCase("pnpm 10", "bin/pnpm.cjs install", "npm_config_registry"),
  npmCase("pnpm 11", "bin/pnpm.mjs install", "pnpm_config_registry"),
  {
    tool: "npm",
    wants: [],
    line: `npm install --no-audit thing@${VERSION}\nnode -p 'require("thing/package.json").version'`,
    said: /^1\.2\.3$/m,
    paths: NPM_PATHS,
    elsewhere: `export npm_config_registry=https://${OTHER}/npm/`,
  },
  {
    tool: "pip",
    wants: ["pip"],
    line: `PYTHONPATH=$work/tools/pip python3 -m pip install --retries 0 --target got thing
PYTHONPATH=got python3 -c 'import thing; print(thing.VERSION)'`,
    said: /^1\.2\.3$/m,
    paths: ["/simple/thing/", `/files/thing-${VERSION}-py3-none-any.whl`],
    elsewhere: `export PIP_INDEX_URL=https://${OTHER}/simple/`,
  },
  {
    tool: "uv",
    wants: ["uv"],
    line: `cp $work/tools/uv/uv-*.data/scripts/uv . && chmod 755 uv
UV_HTTP_RETRIES=0 ./uv pip install --cache-dir cache --python /usr/bin/python3 --target got thing
PYTHONPATH=got python3 -c 'import thing; print(thing.VERSION)'`,
    said: /^1\.2\.3$/m,
    paths: ["/simple/thing/", `/files/thing-${VERSION}-py3-none-any.whl`],
    elsewhere: `export UV_DEFAULT_INDEX=https://${OTHER}/simple/`,
  },
  {
    tool: "cargo",
    wants: ["cargo"],
    // No compiler is wanted to say where the sources come from.
    line: `printf '[package]\\nname = "mine"\\nversion = "0.1.0"\\nedition = "2021"\\n[dependencies]\\nthing = "${VERSION}"\\n' >Cargo.toml
mkdir src; : >src/lib.rs
CARGO_NET_RETRY=0 $work/tools/cargo/cargo vendor --respect-source-config
ls /home/box/.cargo/registry/cache/*`,
    said: /^thing-1\.2\.3\.crate$/m,
    paths: ["/index/config.json", "/index/th/in/thing", `/crates/thing-${VERSION}.crate`],
    elsewhere: `mkdir .cargo; printf '[source.own]\\nregistry = "sparse+https://${OTHER}/index/"\\n' >.cargo/config.toml`,
  },
  {
    tool: "go",
    wants: ["go"],
    line: `export GOROOT=$work/tools/go GOPATH=$PWD/go GOFLAGS=-modcacherw GOTOOLCHAIN=local
printf 'module mine\\n\\ngo 1.20\\n\\nrequire ${HOST}/thing v${VERSION}\\n' >go.mod
$work/tools/go/bin/go mod download -json all`,
    said: /"Zip": ".*v1\.2\.3\.zip"/,
    paths: [".info", ".mod", ".zip"].map((end) => `/go/${HOST}/thing/@v/v${VERSION}${end}`),
    elsewhere: `export GOPROXY=https://${OTHER}/go`,
  },
  {
    tool: "maven",
    wants: ["java", "maven"],
    line: `${JAVA}
echo '${POM}' >pom.xml
bash $work/tools/maven/bin/mvn -B $SETTINGS -Dmaven.repo.local=$PWD/repo validate
ls repo/test/thing/*`,
    said: /BUILD SUCCESS[^]*^thing-1\.2\.3\.pom$/m,
    paths: [`${MAVEN}.pom`],
    elsewhere: `echo '<settings><mirrors><mirror><id>own</id><mirrorOf>*</mirrorOf><url>https://${OTHER}/maven</url></mirror></mirrors></settings>' >s.xml; export SETTINGS="-s $PWD/s.xml"`,
  },
  {
    tool: "apt",
    wants: [],
    line: APT,
    said: /Candidate: 1\.2\.3/,
    paths: ["/debian/./Packages"],
    elsewhere: `host=${OTHER}`,
  },
];

for (const each of CASES)
  test(`${each.tool} installs from the preset's registry, and is refused another one`, options, async (t) => {
    const { real } = shared;
    if (real === undefined) throw new Error("no box");
    const missing = await put(real, each.wants);
    if (missing !== undefined) return t.skip(missing);
    await tried(real, each);
  });

test("gradle installs from the preset's registry, and is refused another one", options, async (t) => {
  const got = await packageManager("gradle");
  if ("missing" in got) return t.skip(got.missing);
  // The distribution's looks for itself nowhere else.
  await using own = await imageHolding(got.folder, [
    "usr/share/gradle",
    "usr/share/java",
    "usr/share/groovy",
  ]);
  await using real = await boxOf(own.name);
  const missing = await put(real, ["java"]);
  if (missing !== undefined) return t.skip(missing);
  await tried(real, {
    tool: "gradle",
    wants: [],
    line: GRADLE,
    said: /^thing-1\.2\.3\.jar$/m,
    paths: [`${MAVEN}.jar`],
    elsewhere: `host=${OTHER}`,
  });
});

for (const [image, packages, each] of [
  [
    "composer",
    ["composer", "php-cli", "php-curl", "php-mbstring", "php-xml", "php-zip"],
    {
      tool: "composer",
      wants: [],
      line: `cat >composer.json <<END
{"repositories": [{"type": "composer", "url": "https://\${host:-${HOST}}/composer"}, {"packagist.org": false}], "require": {"test/thing": "^1.2"}}
END
composer install --no-interaction --no-progress --no-scripts --no-plugins
php -r 'require "vendor/autoload.php"; echo THING, "\\n";'`,
      said: /^1\.2\.3$/m,
      paths: ["/composer/packages.json", "/composer/p2/test/thing.json", "/composer/files/thing.zip"],
      elsewhere: `host=${OTHER}`,
    },
  ],
  [
    "bundler",
    ["ruby", "bundler"],
    {
      tool: "bundler",
      wants: [],
      line: `printf 'source "https://%s/gems"\\ngem "thing", "~> 1.2"\\n' "\${host:-${HOST}}" >Gemfile
export BUNDLE_PATH=vendor/bundle BUNDLE_RETRY=0
bundle install
bundle exec ruby -e 'require "thing"; puts THING'
ls -d vendor/bundle/ruby/*/gems/thing-${VERSION}`,
      said: /^1\.2\.3$[^]*thing-1\.2\.3$/m,
      paths: ["/gems/versions", "/gems/info/thing", `/gems/gems/thing-${VERSION}.gem`],
      elsewhere: `host=${OTHER}`,
    },
  ],
] as const)
  test(`${image} installs from a granted registry, and is refused another one`, options, async (t) => {
    const own = await debianImage(image, packages);
    if ("missing" in own) return t.skip(own.missing);
    await using _ = own;
    await using real = await boxOf(own.name);
    await tried(real, each);
  });

async function tried(real: Real, { line, said, paths, elsewhere }: Case): Promise<void> {
  asked.length = 0;
  const good = await ran(real, line);
  assert.match(good.out, said);
  assert.equal(good.code, 0, good.out);
  for (const wanted of paths) assert.ok(asked.includes(wanted), `${wanted} is not in ${asked.join(" ")}`);
  assert.deepEqual(good.blocked, [], good.out);

  asked.length = 0;
  const bad = await ran(real, `${elsewhere}\n${line}`);
  assert.notEqual(bad.code, 0, bad.out);
  const places = bad.blocked.map(({ host, port, rule }) => `${host}:${port} ${rule}`);
  assert.deepEqual([...new Set(places)], [`${OTHER}:443 not-granted`], bad.out);
  assert.match(bad.blocked[0]?.reason ?? "", /--allow-domain elsewhere\.test/);
  assert.deepEqual(asked, []);
}
