import assert from "node:assert/strict";
import test from "node:test";
import { type PathAccess, placeOf, placeOfPattern } from "../../../src/policy/paths/path-place.ts";

const AROUND = { workspace: "/home/dev/project", home: "/home/dev" };
const words = (text: string): readonly string[] => text.split(" ");

const marks = (pattern: string, op: PathAccess): string => {
  const { kind, secret, protected: name, trap } = placeOfPattern(pattern, op, AROUND);
  return [kind, secret && "secret", (name ?? trap) && "refused"].filter((word) => word !== null).join(" ");
};

for (const [op, wanted, patterns] of [
  ["read", "workspace", "* *.ts src/*.ts *.json src/* **/*.md s* a?.ts [ab].ts pages/[id].tsx ./* .x* *.pub"],
  [
    "read",
    "workspace secret",
    ".e* .g* .en? .* .[e]nv x/.env.* *.pem x/*.key *.p?m id_* id_rs? secr* cred*.json .ss*/x",
  ],
  ["read", "home", "~x/../../home/dev/* /home/dev/p* /home/dev/project/../*"],
  ["read", "home secret", "/home/dev/.ssh/* /home/dev/.a*"],
  ["read", "outside", "/* /et* /etc/* /home/*"],
  ["read", "proc", "/proc/*/environ /proc/*"],
  ["read", "device", "/dev/s* /dev/*"],
  ["read", "system", "/usr/bin/* /lib/*.so"],
  ["read", "unknown", "src/@(a|b)"],
  ["write", "workspace", "* *.ts src/* .x* *.json build/*.o"],
  ["write", "workspace refused", ".g* .e* .gi? .* .[g]it/x x/.vsc*/y .GI* .git/h* .env* mise.* mis*"],
  ["write", "home refused", "/home/dev/.b* /home/dev/.ssh/* /home/dev/.* /home/dev/.config/autostart/*"],
  ["write", "outside refused", "/root/.pro* /home/other/.z* /etc/cron.d/*"],
  ["write", "temp", "/tmp/* /tmp/.g*"],
  ["write", "device", "/dev/sd? /dev/nul?"],
] as const)
  test(`${op}: ${patterns}: ${wanted}`, () => {
    const list = words(patterns);
    assert.deepEqual(
      list.map((pattern) => `${marks(pattern, op)}: ${pattern}`),
      list.map((pattern) => `${wanted}: ${pattern}`),
    );
  });

test("a path without patterns is classified as placeOf does", () => {
  for (const path of ["a.ts", ".env", "/etc/passwd", "/home/dev/.bashrc", "/dev/null"])
    for (const op of ["read", "write"] as const)
      assert.deepEqual(placeOfPattern(path, op, AROUND), placeOf(path, op, AROUND));
});

test("patterns of 64 KiB are classified", () => {
  for (const part of ["*", "[", "?", "*a", "**/", ".*", "(", "[!a-z]"])
    assert.equal(
      typeof placeOfPattern(`/x/${part.repeat(65_536 / part.length)}`, "read", AROUND).kind,
      "string",
    );
});
