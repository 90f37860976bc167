import assert from "node:assert/strict";
import { networkInterfaces } from "node:os";
import test from "node:test";
import { addressClass, isAmong, ownAddresses } from "../../../src/docker/egress/address-class.ts";
import { fc } from "../../fixtures/property.ts";

const CASES = {
  public:
    "9.9.9.9 8.8.8.8 1.1.1.1 100.63.255.255 100.128.0.0 172.15.0.1 172.32.0.1 223.255.255.255 2600::1 2a00:1450::1",
  private:
    "10.0.0.0 10.255.255.255 172.16.0.1 172.31.255.255 192.168.1.1 100.64.0.1 169.254.1.1 192.0.2.1 198.51.100.7 203.0.113.9 198.19.0.1 240.0.0.1 255.255.255.254 fc00::1 fdff::1 fe80::1 fe80::1%eth0 fec0::1 2001:db8::1 3fff::1 100::1 64:ff9b:1::9.9.9.9 2002:a00:1:: 4000::1 ::9.9.9.9 64:ff9b::10.0.0.1 ::ffff:10.0.0.1",
  metadata:
    "169.254.169.254 169.254.170.2 100.100.100.200 168.63.129.16 192.0.0.192 fd00:ec2::254 ::ffff:169.254.169.254 64:ff9b::169.254.169.254 2002:a9fe:a9fe::1 2600::5efe:169.254.169.254",
  loopback:
    "127.0.0.1 127.255.255.255 ::1 ::ffff:127.0.0.1 ::127.0.0.1 64:ff9b::7f00:1 2002:7f00:1:: 2600::200:5efe:127.0.0.1 ::ffff:0:127.0.0.1",
  never: "0.0.0.0 0.1.2.3 224.0.0.1 239.255.255.255 255.255.255.255 :: ff02::1 64:ff9b::",
} as const;

for (const [kind, addresses] of Object.entries(CASES))
  for (const address of addresses.split(" "))
    test(`${address} is ${kind}`, () => {
      assert.equal(addressClass(address), kind);
    });

test("a v4 address is of its kind in every form of v6 that leads to it", () => {
  const closed = fc.constantFrom("127.0.0.1", "10.9.8.7", "169.254.169.254", "192.168.0.1", "224.0.0.9");
  const forms = fc.constantFrom<(address: string) => string>(
    (address) => `::ffff:${address}`,
    (address) => `64:ff9b::${address}`,
    (address) => `2600:1:2:3:0:5efe:${address}`,
    (address) => `2002:${hex(address)}::1`,
    (address) => `2001:0:${hex(address)}:0:0:f6f6:f6f6`,
    (address) => `2001:0:909:909:0:0:${hex(inverted(address))}`,
  );
  fc.assert(
    fc.property(closed, forms, (address, form) => {
      assert.equal(addressClass(form(address)), addressClass(address), form(address));
    }),
  );
});

const hex = (address: string): string => {
  const [a = 0, b = 0, c = 0, d = 0] = address.split(".").map(Number);
  return `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
};
const inverted = (address: string): string =>
  address
    .split(".")
    .map((byte) => 255 - Number(byte))
    .join(".");

test("this host's own addresses are known in every spelling", () => {
  const own = ownAddresses();
  const all = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  assert.ok(all.length > 0);
  for (const { address } of all) assert.ok(isAmong(own, address));
  assert.ok(isAmong(new Set(["0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.1"]), "0:0::1"));
  assert.ok(!isAmong(own, "9.9.9.9"));
});
