import assert from "node:assert/strict";
import test from "node:test";
import { EXIT, HarnessError } from "../../src/core/errors.ts";
import { isLoopback, ollamaAddress } from "../../src/models/providers/ollama-client.ts";

const FORMS: Readonly<Record<string, string>> = {
  "": "http://127.0.0.1:11434",
  "1.2.3.4": "http://1.2.3.4:11434",
  "http://:1234": "http://127.0.0.1:1234",
  "1.2.3.4:1234": "http://1.2.3.4:1234",
  ":1234": "http://127.0.0.1:1234",
  "0.0.0.0": "http://127.0.0.1:11434",
  "0.0.0.0:1234": "http://127.0.0.1:1234",
  "http://0.0.0.0:1234/": "http://127.0.0.1:1234",
  "example.com": "http://example.com:11434",
  "Example.com:1234": "http://example.com:1234",
  "example.com:": "http://example.com:11434",
  "[::1]": "http://[::1]:11434",
  "[::1]:1337": "http://[::1]:1337",
  "::1": "http://[::1]:11434",
  "::": "http://[::1]:11434",
  "[::]:1337": "http://[::1]:1337",
  "fe80::2": "http://[fe80::2]:11434",
  " 1.2.3.4 ": "http://1.2.3.4:11434",
  '"1.2.3.4"': "http://1.2.3.4:11434",
  " ' 1.2.3.4 ' ": "http://1.2.3.4:11434",
  "http://1.2.3.4": "http://1.2.3.4",
  "http://1.2.3.4:80": "http://1.2.3.4",
  "HTTPS://1.2.3.4": "https://1.2.3.4",
  "https://1.2.3.4:4321": "https://1.2.3.4:4321",
  "https://example.com/ollama/": "https://example.com/ollama",
  "example.com:1234/ollama": "http://example.com:1234/ollama",
  "http://localhost:11434/v1": "http://localhost:11434",
  "http://localhost:11434/api/": "http://localhost:11434",
};

const NONSENSE = [
  ":0",
  ":66000",
  ":-1",
  "host:port",
  "11434",
  "1.2.3",
  "0x7f.1",
  "ftp://host",
  "http://",
  "http:///path",
  "://host",
  "http://http://host",
  "two words",
  "[::1",
  "::zz",
  "host?x=1",
  "host#x",
  String.raw`host\x`,
];

for (const [written, address] of Object.entries(FORMS))
  test(`OLLAMA_HOST ${JSON.stringify(written)} means ${address}`, () => {
    assert.equal(ollamaAddress({ OLLAMA_HOST: written }, null), address);
  });

for (const written of NONSENSE)
  test(`OLLAMA_HOST ${JSON.stringify(written)} is refused as a usage error that shows the value and the expected form`, () => {
    assert.throws(
      () => ollamaAddress({ OLLAMA_HOST: written }, null),
      new HarnessError(
        EXIT.usage,
        `OLLAMA_HOST: ${JSON.stringify(written)} is not an address of an Ollama server; expected host, host:port or http://host:port`,
        "unset OLLAMA_HOST",
      ),
    );
  });

test("the setting overrides OLLAMA_HOST, even an invalid one, and without either the default is used", () => {
  assert.deepEqual(
    [
      ollamaAddress({ OLLAMA_HOST: "other:1" }, "http://box:2/"),
      ollamaAddress({ OLLAMA_HOST: ":0" }, "http://0.0.0.0:11434"),
      ollamaAddress({}, null),
    ],
    ["http://box:2", "http://127.0.0.1:11434", "http://127.0.0.1:11434"],
  );
});

test("an address with a password is refused without showing the password", () => {
  assert.throws(
    () => ollamaAddress({}, "http://me:hunter2@box:11434"),
    new HarnessError(
      EXIT.usage,
      "base_url: the value (not shown, it may hold a password) is not an address of an Ollama server; expected host, host:port or http://host:port",
      "harness config set base_url http://127.0.0.1:11434",
    ),
  );
});

test("only addresses of this machine count as loopback", () => {
  const addresses = [
    "http://127.0.0.1:11434",
    "http://127.8.9.10",
    "http://localhost:1",
    "http://[::1]:1337",
    "http://localhost.example.org",
    "http://127.0.0.1.example.org",
    "http://10.0.0.1",
    "not an address",
  ];
  assert.deepEqual(addresses.filter(isLoopback), addresses.slice(0, 4));
});
