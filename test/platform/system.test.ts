import assert from "node:assert/strict";
import test from "node:test";
import { isDebianLike, parseOsRelease, readSystem, type System } from "../../src/platform/host-programs.ts";
import { scratch } from "../fixtures/scratch.ts";

const RELEASES: Readonly<Record<string, readonly [text: string, fields: object]>> = {
  Debian: [
    'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nVERSION_CODENAME=bookworm\nID=debian\n',
    { PRETTY_NAME: "Debian GNU/Linux 12 (bookworm)", VERSION_CODENAME: "bookworm", ID: "debian" },
  ],
  "a derivative with single quotes and two likes": [
    "ID='linuxmint'\nID_LIKE='ubuntu debian'\n",
    { ID: "linuxmint", ID_LIKE: "ubuntu debian" },
  ],
  "comments, blanks, Windows line ends and lines without a setting": [
    "# a comment\r\n\r\n  ID=arch  \r\nnonsense\r\nlower=case\r\n=empty\r\n",
    { ID: "arch" },
  ],
  "an empty value": ['ID=""\nVERSION_CODENAME=\n', { ID: "", VERSION_CODENAME: "" }],
  "an equals sign in a value": ['HOME_URL="https://x/?a=b"\n', { HOME_URL: "https://x/?a=b" }],
  "a key that occurs twice: the last counts": ["ID=a\nID=b\n", { ID: "b" }],
  nothing: ["", {}],
};

for (const [name, [text, fields]] of Object.entries(RELEASES))
  test(`os-release is read: ${name}`, () => {
    assert.deepEqual(parseOsRelease(text), fields);
  });

const LIKE: readonly (readonly [distribution: string, like: readonly string[], debian: boolean])[] = [
  ["debian", [], true],
  ["ubuntu", ["debian"], true],
  ["linuxmint", ["ubuntu", "debian"], true],
  ["raspbian", ["debian"], true],
  ["fedora", [], false],
  ["rocky", ["rhel", "centos", "fedora"], false],
  ["debianish", [], false],
  ["", [], false],
];

test("Debian and its derivatives are recognised as Debian-like", () => {
  const base: System = {
    platform: "linux",
    root: true,
    distribution: "",
    like: [],
    codename: "",
    systemd: false,
    dockerd: false,
  };
  assert.deepEqual(
    LIKE.map(([distribution, like]) => isDebianLike({ ...base, distribution, like })),
    LIKE.map(([, , debian]) => debian),
  );
});

test("dockerd is looked for along PATH", async () => {
  await using place = await scratch({ "bin/dockerd": "" });
  const without = await readSystem({ PATH: place.path });
  const having = await readSystem({ PATH: `/none::${place.at("bin")}` });
  assert.deepEqual(having, { ...without, dockerd: true });
  assert.deepEqual([having.platform, having.root], [process.platform, process.getuid?.() === 0]);
});
