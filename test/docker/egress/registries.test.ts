import assert from "node:assert/strict";
import { chmod, readdir, symlink } from "node:fs/promises";
import test from "node:test";
import { type Preset, READING } from "../../../src/core/network.ts";
import {
  askRegistries,
  type PresetGrants,
  type RegistryQuestion,
} from "../../../src/docker/egress/registries.ts";
import { type Scratch, scratch } from "../../fixtures/scratch.ts";

const scriptOf = (body: string): string => `#!/bin/sh\nPATH=/usr/bin:/bin\n${body}\n`;

/** Tools of a user's, as scripts on a search path of their own. */
async function withTools(
  tools: Readonly<Record<string, string>>,
  files: Readonly<Record<string, string>> = {},
): Promise<Scratch> {
  const scripts: Readonly<Record<string, string>> = Object.fromEntries(
    Object.entries(tools).map(([name, body]) => [`bin/${name}`, scriptOf(body)]),
  );
  const place = await scratch({ "work/x": "", "home/x": "", ...scripts, ...files });
  await Promise.all(Object.keys(tools).map((name) => chmod(place.at(`bin/${name}`), 0o755)));
  return place;
}

const ask = async (
  place: Scratch,
  preset: Preset,
  more: Partial<RegistryQuestion> = {},
): Promise<PresetGrants> => {
  const [answer] = await askRegistries({
    presets: [preset],
    env: { PATH: place.at("bin"), HOME: place.at("home") },
    workspace: place.at("work"),
    uid: process.getuid?.() ?? 0,
    state: place.at("state"),
    signal: new AbortController().signal,
    ...more,
  });
  assert.ok(answer !== undefined);
  return answer;
};

const hostsOf = ({ grants }: PresetGrants): readonly string[] =>
  grants.map(({ host, ports }) => `${host}:${ports.join()}`);

const NPM = `echo asked >> "$HOME/asked"
case "$1" in
  config) echo '{"registry":"https://npm.example.org/team/","@own:registry":"https://own.example.org:8443/","proxy":"http://me:word@proxy.example.org"}';;
  view) echo '"https://files.example.org/npm-1.0.0.tgz"';;
esac`;

const askBerry: RegistryQuestion["askBox"] = ([program, , , key]) =>
  Promise.resolve(program === "yarn" && key === "npmRegistryServer" ? "https://berry.example.org\n" : null);

test("yarn's own registry is included with npm's, from the host's yarn or else the box's", async () => {
  const classic = `[ "$3" = registry ] && echo "https://yarn.example.org" || echo undefined`;
  await using place = await withTools({ npm: NPM, yarn: classic });
  const answer = await ask(place, "npm");
  assert.ok(hostsOf(answer).includes("yarn.example.org:443"));
  assert.partialDeepStrictEqual(answer.variables, {
    npm_config_registry: "https://npm.example.org/team/",
    pnpm_config_registry: "https://npm.example.org/team/",
    YARN_REGISTRY: "https://yarn.example.org/",
    YARN_NPM_REGISTRY_SERVER: "https://yarn.example.org/",
  });
  await using without = await withTools({ npm: NPM });
  assert.equal(hostsOf(await ask(without, "npm")).includes("yarn.example.org:443"), false);
  assert.ok(
    hostsOf(await ask(without, "npm", { askBox: askBerry, boxHasYarn: true })).includes(
      "berry.example.org:443",
    ),
  );
});

test("npm is asked for its registries, those of scopes, and where their files are", async () => {
  await using place = await withTools({ npm: NPM });
  const answer = await ask(place, "npm");
  assert.deepEqual(hostsOf(answer), ["npm.example.org:443", "own.example.org:8443", "files.example.org:443"]);
  for (const grant of answer.grants) {
    assert.deepEqual(grant.methods, ["GET", "HEAD", "OPTIONS"]);
    assert.deepEqual([grant.private, grant.origin], [true, "npm"]);
  }
  assert.equal(answer.source, "host");
  const registry = "https://npm.example.org/team/";
  assert.deepEqual(answer.variables, {
    npm_config_registry: registry,
    pnpm_config_registry: registry,
    YARN_NPM_REGISTRY_SERVER: registry,
  });
});

/** Hosts that only the user may name: this host and a cloud's metadata, by name and in every form of an address. */
const HOME = [
  "127.0.0.1:9",
  "[::1]:9",
  "localhost:9",
  "a.localhost:9",
  "169.254.169.254",
  "0x7f.1",
  "2852039166",
];

for (const host of HOME)
  test(`a host ${host} that only a registry names is not granted`, async () => {
    const npm = (registry: string): string =>
      NPM.replace("https://files.example.org", `http://${host}`).replace("https://npm.example.org", registry);
    await using place = await withTools({ npm: npm("https://npm.example.org") });
    assert.deepEqual(hostsOf(await ask(place, "npm")), ["npm.example.org:443", "own.example.org:8443"]);
    // The twin: the same host, as the user has it in the settings.
    await using own = await withTools({ npm: npm(`http://${host}`) });
    const [url] = [new URL(`http://${host}`)];
    const grants = hostsOf(await ask(own, "npm"));
    assert.equal(grants.length, 2);
    assert.equal(grants[0], `${url.hostname.replace(/^\[|\]$/g, "")}:${url.port || "80"}`);
  });

for (const host of HOME)
  test(`the preset git does not grant a repository's remote ${host}`, async () => {
    const remote = `[remote "a"]\n\turl = https://${host}/a/b.git\n`;
    const other = '[remote "b"]\n\turl = https://git.example.org/a.git\n';
    await using place = await withTools({}, { "work/.git/HEAD": "", "work/.git/config": remote });
    await assert.rejects(ask(place, "git"), /no remote/);
    await place.write("work/.git/config", remote + other);
    assert.deepEqual(hostsOf(await ask(place, "git")), ["git.example.org:443"]);
  });

const gitPlace = (
  remotes: readonly string[],
  files: Readonly<Record<string, string>> = {},
): Promise<Scratch> =>
  withTools(
    {},
    {
      "work/.git/HEAD": "ref: refs/heads/main\n",
      "work/.git/config": remotes.map((url, at) => `[remote "r${at}"]\n\turl = ${url}\n`).join(""),
      ...files,
    },
  );

for (const host of ["10.1.2.3", "192.168.0.1:8443", "[fd00::1]", "0xa010203", "100.64.0.1"])
  test(`the preset git does not grant a remote at the private address ${host}`, async () => {
    await using place = await gitPlace([`https://${host}/a.git`]);
    await assert.rejects(ask(place, "git"), /no remote/);
    await place.write("home/.gitconfig", `[credential "https://${host}"]\n\thelper = store\n`);
    const { grants } = await ask(place, "git");
    assert.deepEqual(
      grants.map((grant) => grant.private),
      [true],
      "the twin: the user's own settings name it",
    );
  });

test("the name of a remote may resolve only to public addresses, unless the user's own settings name that server", async () => {
  const remotes = ["https://git.example.org/a.git", "https://corp.example.org:8443/b.git"];
  await using place = await gitPlace(remotes);
  const kinds = async (more: Partial<RegistryQuestion> = {}): Promise<readonly string[]> =>
    (await ask(place, "git", more)).grants
      .map((grant) => `${grant.host}:${grant.ports.join()} ${grant.private ? "private" : "public"}`)
      .toSorted();
  const none = ["corp.example.org:8443 public", "git.example.org:443 public"];
  const known = ["corp.example.org:8443 private", "git.example.org:443 public"];
  assert.deepEqual(await kinds(), none);
  for (const [file, text] of [
    [".gitconfig", '[http "https://corp.example.org:8443/"]\n\tsslCAInfo = /ca.pem\n'],
    [".config/git/config", '[url "https://corp.example.org:8443/team"]\n\tinsteadOf = corp:\n'],
  ] as const) {
    await place.write(`home/${file}`, text);
    assert.deepEqual(await kinds(), known, file);
    // Another port is another server, and settings in the workspace are the repository's words.
    await place.write(`home/${file}`, text.replace("8443", "8444"));
    assert.deepEqual(await kinds(), none, file);
    await place.write(`work/${file}`, text);
    const env = { PATH: place.at("bin"), HOME: place.at("work") };
    assert.deepEqual(await kinds({ env }), none, `${file} of the workspace`);
  }
});

test("a remote whose host is a pattern grants nothing", async () => {
  await using place = await gitPlace(["https://*.example.org/a.git", "https://git.example.org/a.git"]);
  assert.deepEqual(hostsOf(await ask(place, "git")), ["git.example.org:443"]);
});

test("the hosts of files are asked for once, as long as the registries stay the same", async () => {
  await using place = await withTools({ npm: NPM });
  const first = await ask(place, "npm");
  assert.deepEqual(await ask(place, "npm"), first);
  assert.equal((await place.read("home/asked")).split("\n").length - 1, 3);
  await place.write("bin/npm", scriptOf(NPM.replace("npm.example.org", "npm2.example.org")));
  assert.deepEqual(hostsOf(await ask(place, "npm"))[0], "npm2.example.org:443");
  assert.equal((await place.read("home/asked")).split("\n").length - 1, 5);
  assert.deepEqual(await readdir(place.at("state/registries")), ["npm.json"]);
  assert.doesNotMatch(await place.read("state/registries/npm.json"), /word|tgz/);
});

test("pip is asked for its indexes and for the sources of its files", async () => {
  const pip = `case "$1" in
  config) printf "global.index-url='https://user:word@pip.example.org/simple'\\nglobal.extra-index-url='https://a.example.org/simple https://b.example.org:8443/'\\nglobal.proxy='http://proxy.example.org'\\n";;
  install) [ -z "$PIP_FIND_LINKS" ] && echo '{"install":[{"download_info":{"url":"https://files.example.org/x.whl"}}]}';;
esac`;
  await using place = await withTools({ pip });
  const answer = await ask(place, "pip");
  assert.deepEqual(hostsOf(answer), [
    "pip.example.org:443",
    "a.example.org:443",
    "b.example.org:8443",
    "files.example.org:443",
  ]);
  // In the box: without the name and the password.
  const [index, more] = [
    "https://pip.example.org/simple",
    "https://a.example.org/simple https://b.example.org:8443/",
  ];
  assert.deepEqual(answer.variables, {
    PIP_INDEX_URL: index,
    UV_DEFAULT_INDEX: index,
    PDM_PYPI_URL: index,
    PIPENV_PYPI_MIRROR: index,
    PIP_EXTRA_INDEX_URL: more,
    UV_INDEX: more,
  });
});

test("pip without a configured index reports its default one", async () => {
  const pip = `case "$1" in
  config) echo "global.cert='/etc/ssl/x.pem'";;
  help) printf -- '  -i, --index-url <url>  Base URL (default https://standard.example.org/simple). This\\n';;
  install) exit 1;;
esac`;
  await using place = await withTools({ pip3: pip });
  const answer = await ask(place, "pip");
  assert.deepEqual([hostsOf(answer), answer.variables], [["standard.example.org:443"], {}]);
});

test("cargo runs in a separate home with the user's settings, and its index names the hosts of files", async () => {
  const cargo = `case "$1" in
  generate-lockfile) grep -q own-index "$CARGO_HOME/config.toml" && mkdir -p "$CARGO_HOME/registry/index/index.example.org-0123456789abcdef" &&
    echo '{"dl":"https://dl.example.org/{crate}/{version}/download","api":"https://api.example.org"}' > "$CARGO_HOME/registry/index/index.example.org-0123456789abcdef/config.json";;
esac`;
  const config =
    '[source.crates-io]\nreplace-with = "near"\n[source.near]\nregistry = "sparse+https://own.example.org:8443/"\n[registries.own-index]\nindex = "sparse+https://own.example.org:8443/"\n[http]\nproxy = "http://proxy.example.org"\n';
  await using place = await withTools({ cargo }, { "home/.cargo/config.toml": config });
  const answer = await ask(place, "cargo");
  assert.match(answer.settings["cargo.toml"] ?? "", /replace-with = "near"/);
  assert.equal(answer.variables["CARGO_REGISTRIES_OWN_INDEX_INDEX"], "sparse+https://own.example.org:8443/");
  assert.deepEqual(hostsOf(answer), ["own.example.org:8443", "index.example.org:443", "dl.example.org:443"]);
  assert.deepEqual(await readdir(place.at("home/.cargo")), ["config.toml"]);
});

test("go reports its proxies and its checksum server", async () => {
  await using place = await withTools({
    go: "printf 'https://one.example.org|https://two.example.org:8443/path,direct\\nsum.example.org+033de0ae+Ac4zctda https://mirror.example.org\\n'",
  });
  assert.deepEqual(hostsOf(await ask(place, "go")), [
    "one.example.org:443",
    "two.example.org:8443",
    "mirror.example.org:443",
  ]);
  await place.write("bin/go", scriptOf("printf 'https://one.example.org\\noff\\n'"));
  assert.deepEqual(hostsOf(await ask(place, "go")), ["one.example.org:443"]);
  await place.write("bin/go", scriptOf("printf 'https://me:word@one.example.org/go,direct\\noff\\n'"));
  assert.deepEqual((await ask(place, "go")).variables, {
    GOPROXY: "https://one.example.org/go,direct",
    GOSUMDB: "off",
  });
});

test("maven's first download suffices, and blocking mirrors are ignored", async () => {
  const mvn = `case "$1" in
  --version) echo "Maven home: $HOME/maven";;
  *) echo '[INFO] Downloading from team: https://maven.example.org/repo/x.pom'; echo '[INFO] Downloaded from team: https://maven.example.org/repo/x.pom'
     exec sleep 600;;
esac`;
  const settings =
    "<mirror><url>http://0.0.0.0/</url><blocked>true</blocked></mirror><!-- <url>https://not.example.org</url> --><mirror><url>https://mirror.example.org:8443/m</url><mirrorOf>*</mirrorOf></mirror>";
  await using place = await withTools({ mvn }, { "home/.m2/settings.xml": settings });
  const answer = await ask(place, "maven");
  assert.deepEqual(hostsOf(answer), ["mirror.example.org:8443", "maven.example.org:443"]);
  const text = answer.settings["maven/settings.xml"] ?? "";
  assert.deepEqual(
    [...text.matchAll(/<url>(.*)<\/url>/g)].map(([, url]) => url),
    ["https://mirror.example.org:8443/m", "http://0.0.0.0/"],
  );
  assert.match(answer.variables["JAVA_TOOL_OPTIONS"] ?? "", /-Dmaven\.conf=\/run\/harness\/maven$/);
});

test("apt reports the addresses of its sources", async () => {
  await using place = await withTools({
    "apt-get": "printf 'http://deb.example.org/debian/\\nhttps://own.example.org/apt/\\nfile:///srv/\\n'",
  });
  assert.deepEqual(hostsOf(await ask(place, "apt")), ["deb.example.org:80", "own.example.org:443"]);
});

test("the hosts for git are those of the workspace's own https remotes, and git is not run", async () => {
  await using place = await withTools(
    { git: 'touch "$HOME/ran"' },
    {
      "work/a/b/x": "",
      "work/.git/HEAD": "ref: refs/heads/main\n",
      "work/.git/config":
        '[remote "origin"]\n\turl = https://git.example.org/a/b.git\n[remote "ssh"]\n\turl = git@ssh.example.org:a/b\n[remote "old"]\n\turl = http://plain.example.org/a\n',
    },
  );
  const answer = await ask(place, "git");
  assert.deepEqual(hostsOf(answer), ["git.example.org:443"]);
  const below = { workspace: place.at("work/a/b"), top: place.at("work") };
  assert.deepEqual(
    hostsOf(await ask(place, "git", below)),
    ["git.example.org:443"],
    "of a folder below it, too",
  );
  await assert.rejects(ask(place, "git", { workspace: below.workspace }), /no remote/, "the twin");
  assert.deepEqual(answer.grants[0]?.methods, READING);
  assert.deepEqual(await readdir(place.at("home")), ["x"]);
});

test("a program of the repository is never run, however the search path leads to it", async () => {
  const planted =
    '#!/bin/sh\nPATH=/usr/bin:/bin\ntouch "$HOME/ran"\necho \'{"registry":"https://evil.example.org/"}\'\n';
  await using place = await withTools({}, { "work/bin/npm": planted });
  await chmod(place.at("work/bin/npm"), 0o755);
  await symlink(place.at("work/bin"), place.at("linked"));
  const around = { HOME: place.at("home") };
  for (const folder of [place.at("work/bin"), place.at("linked"), "bin", "."]) {
    const env = { ...around, PATH: folder };
    await assert.rejects(ask(place, "npm", { env }), { exit: 2 });
  }
  assert.deepEqual(await readdir(place.at("home")), ["x"]);
  const outside = { ...around, PATH: place.at("work/bin") };
  const answer = await ask(place, "npm", { env: outside, workspace: place.at("home") });
  assert.deepEqual(
    hostsOf(answer),
    ["evil.example.org:443"],
    "the twin: the same program, of another folder",
  );
});

test("tools run in an empty folder, whatever the repository contains", async () => {
  await using place = await withTools({
    npm: 'ls -A | wc -l >> "$HOME/seen"; echo \'{"registry":"https://npm.example.org/"}\'',
  });
  await ask(place, "npm");
  assert.match(await place.read("home/seen"), /^\s*0\n\s*0\n$/);
});

test("if the host lacks a tool the box's is asked, or else the remedy is to name the registry by hand", async () => {
  await using place = await withTools({});
  const asked: string[] = [];
  const askBox = (argv: readonly string[]): Promise<string | null> => {
    asked.push(argv.join(" "));
    return Promise.resolve('{"registry":"https://box.example.org/"}');
  };
  const env = { PATH: place.at("bin"), HOME: place.at("home") };
  const answer = await ask(place, "npm", { env, askBox });
  assert.deepEqual([hostsOf(answer), answer.source], [["box.example.org:443"], "box"]);
  assert.deepEqual(asked, ["npm config ls -l --json", "yarn config get npmRegistryServer"]);
  for (const preset of ["npm", "pip", "cargo", "go", "maven", "apt", "git"] as const) {
    await assert.rejects(ask(place, preset, { env }), {
      exit: 2,
      remedy: new RegExp(`--allow-domain ${preset}=`),
    });
  }
});
