import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import test from "node:test";
import { downloadSystem, sourcesFor } from "../../src/docker/base-image.ts";
import type { System } from "../../src/platform/host-programs.ts";
import { scratch, type Scratch } from "../fixtures/scratch.ts";

const DEBIAN = { distribution: "debian", codename: "bookworm" };
const UBUNTU = { distribution: "ubuntu", codename: "noble" };

/** `REPO_URI|RELEASE|CODENAME|COMPONENT|ORIGIN|TRUSTED`, as apt fills it in. */
const OWN = "http://mirror.example/debian/|bookworm|bookworm|main|Debian|yes";
const OWN_LINE = "deb http://mirror.example/debian/ bookworm main\n";

type Case = readonly [system: typeof DEBIAN, targets: readonly string[], list: string];

const TARGETS: Readonly<Record<string, Case>> = {
  "the release itself": [DEBIAN, [OWN], OWN_LINE],
  "its updates and security fixes, each with its own mirror, sorted": [
    DEBIAN,
    [
      "http://security.example/|bookworm-security|bookworm-security|main|Debian|yes",
      OWN,
      "http://mirror.example/debian/|bookworm-updates|bookworm-updates|main|Debian|yes",
    ],
    `deb http://mirror.example/debian/ bookworm main
deb http://mirror.example/debian/ bookworm-updates main
deb http://security.example/ bookworm-security main
`,
  ],
  "several components": [
    UBUNTU,
    ["main", "universe"].map((part) => `http://archive.ubuntu.com/ubuntu/|noble|noble|${part}|Ubuntu|yes`),
    `deb http://archive.ubuntu.com/ubuntu/ noble main\ndeb http://archive.ubuntu.com/ubuntu/ noble universe\n`,
  ],
  "each archive once": [DEBIAN, [OWN, OWN], OWN_LINE],
  "an alias of the release, by its code name": [
    DEBIAN,
    ["http://mirror.example/debian/|stable|bookworm|main|Debian|yes"],
    OWN_LINE,
  ],
  "without other releases and backports": [
    DEBIAN,
    [
      "http://mirror.example/debian/|trixie|trixie|main|Debian|yes",
      "http://mirror.example/debian/|bookworm-backports|bookworm-backports|main|Debian Backports|yes",
      "http://mirror.example/debian/|bookworm-backports|bookworm-backports|main|Debian|yes",
    ],
    "",
  ],
  "without archives of other origins with the same name": [
    UBUNTU,
    ["https://apt.releases.hashicorp.com/|noble|noble|main|Artifactory|yes"],
    "",
  ],
  "without archives that apt does not trust": [
    DEBIAN,
    [OWN.replace(/yes$/, "no"), OWN.replace(/\|yes$/, "|"), OWN.replace(/\|yes$/, "")],
    "",
  ],
  "without file archives, which a container cannot reach": [
    DEBIAN,
    ["file:/srv/mirror/|bookworm|bookworm|main|Debian|yes", "cdrom://[x]/|bookworm|bookworm|main|Debian|yes"],
    "",
  ],
  "without invalid lines": [DEBIAN, ["", "|||||", "E: something went wrong"], ""],
};

for (const [name, [system, targets, list]] of Object.entries(TARGETS))
  test(`the sources of a base are ${name}`, () => {
    assert.equal(sourcesFor(system, targets), list);
  });

const SYSTEM: System = {
  ...DEBIAN,
  platform: "linux",
  root: false,
  like: [],
  systemd: false,
  dockerd: false,
};

/** apt's programs as they look from here: each writes down its words and the configuration it was given. */
const APT_GET = `#!/bin/sh
echo "apt-get $*" >>"$LOG"
cat "$APT_CONFIG" >>"$LOG.conf"
case "$*" in
  *indextargets*) printf '%s\\n' "$TARGETS" ;;
  *install*) : >"$(sed -n 's/^Dir::Cache "\\(.*\\)";/\\1/p' "$APT_CONFIG")/archives/base_1.deb" ;;
esac
`;

async function aptMachine(): Promise<Scratch> {
  const place = await scratch({ "log.conf": "" });
  await place.write("bin/apt-get", APT_GET, 0o755);
  await place.write("bin/apt-cache", '#!/bin/sh\necho "apt-cache $*" >>"$LOG"\nexit 100\n', 0o755);
  await place.write(
    "bin/apt-config",
    "#!/bin/sh\necho 'Acquire::http::Proxy \"http://proxy:1\";'\necho 'APT::Update::Post \"x\";'\n",
    0o755,
  );
  await place.write("bin/dpkg", "#!/bin/sh\necho amd64\n", 0o755);
  await mkdir(place.at("work"));
  return place;
}

function download(place: Scratch, targets: string): ReturnType<typeof downloadSystem> {
  const env = { PATH: `${place.at("bin")}:/usr/bin:/bin`, LOG: place.at("log"), TARGETS: targets };
  const signal = new AbortController().signal;
  const request = { root: place.path, cache: place.at("cache"), env, signal, onLine: () => undefined };
  return downloadSystem(place.at("work"), SYSTEM, request);
}

test("packages are requested only from verified archives, into our own folder", async () => {
  await using place = await aptMachine();
  const { debs, sourcesList } = await download(place, `${OWN}\nhttps://x/|bookworm|bookworm|main|Other|yes`);
  assert.deepEqual(
    { debs, sourcesList },
    { debs: [place.at("work/cache/archives/base_1.deb")], sourcesList: OWN_LINE },
  );
  assert.equal(await place.read("work/base.list"), OWN_LINE);
  const words = (await place.read("log")).trim().split("\n");
  assert.deepEqual(words, [
    "apt-get -q update",
    "apt-get indextargets --format $(REPO_URI)|$(RELEASE)|$(CODENAME)|$(COMPONENT)|$(ORIGIN)|$(TRUSTED) Created-By: Packages",
    "apt-cache show usr-is-merged",
    "apt-get -qq -y --download-only install ?essential ?priority(required) apt ca-certificates",
  ]);
});

test("apt gets our own folders and this machine's proxies, and nothing that runs programs or weakens checks", async () => {
  await using place = await aptMachine();
  await download(place, OWN);
  const lines = (await place.read("log.conf")).split("\n").filter((line) => line !== "");
  const folders = lines.flatMap((line) => /^Dir::\S+ "(\/.+)";$/.exec(line)?.[1] ?? []);
  const outside = folders.filter((folder) => folder !== "/dev/null" && !folder.startsWith(place.at("work")));
  assert.deepEqual([folders.length > 0, outside], [true, []]);
  assert.ok(lines.includes('Acquire::http::Proxy "http://proxy:1";'));
  assert.ok(lines.includes('APT::Get::AllowUnauthenticated "false";'));
  assert.equal(
    lines.some((line) => line.includes("Post")),
    false,
  );
});

test("without a verified archive nothing is downloaded, and apt's own words explain why", async () => {
  await using place = await aptMachine();
  await place.write(
    "bin/apt-get",
    '#!/bin/sh\necho "apt-get $*" >>"$LOG"\necho "E: no route" >&2\nexit 100\n',
    0o755,
  );
  await assert.rejects(download(place, ""), {
    message: "apt has no verified archive of debian bookworm: E: no route",
  });
  assert.equal((await place.read("log")).includes("install"), false);
});

test("an apt that downloads nothing is a failure", async () => {
  await using place = await aptMachine();
  await place.write("bin/apt-get", APT_GET.replace(/ {2}\*install\*.*\n/, ""), 0o755);
  await assert.rejects(download(place, OWN), { message: "apt downloaded nothing" });
});
