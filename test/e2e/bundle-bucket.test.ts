// slow: it repeats for a bucket what bundle-read.test.ts shows for a file
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import test, { describe } from "node:test";
import { BUCKET, startBucket } from "../fakes/bucket-server.ts";
import { type Ended, runProgram } from "../fixtures/cli.ts";
import { kept } from "../fixtures/kept-session.ts";

interface Held extends AsyncDisposable {
  readonly id: string;
  readonly file: string;
  readonly bucket: Awaited<ReturnType<typeof startBucket>>;
  readonly read: (words: readonly string[], env?: Readonly<Record<string, string>>) => Promise<Ended>;
}

const KEY = "of/a batch/two+two//ü.tar";
const ADDRESS = `s3://${BUCKET}/${KEY}`;

/** A session in a bucket, and another machine that has nothing else of it. */
async function held(): Promise<Held> {
  await using stack = new AsyncDisposableStack();
  const { place, id, harness } = stack.use(await kept());
  const bucket = stack.use(await startBucket({ page: 1 }));
  await harness(["sessions", "export", id, "--bundle", "s.tar"]);
  const file = place.at("work/s.tar");
  bucket.objects.set(KEY, { bytes: await readFile(file), changed: 1 });
  const all = stack.move();
  return {
    id,
    file,
    bucket,
    read: async (words, env = {}) => {
      const ended = await runProgram("bin/harness", words, {
        home: place.path,
        cwd: place.at("other"),
        env: { XDG_STATE_HOME: place.at("there"), DOCKER_HOST: "unix:///none", ...bucket.env, ...env },
      });
      assert.ok(!existsSync(place.at("there/harness/sessions.db")));
      return ended;
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

describe("commands that read a bundle also read it from a bucket", { concurrency: 2 }, () => {
  test("each command shows the same for an object as for the file", async () => {
    await using one = await held();
    for (const words of [["report"], ["sessions", "show"], ["diff"], ["replay"], ["report", "--verify"]]) {
      const [here, there] = [
        await one.read([...words, "--bundle", one.file]),
        await one.read([...words, "--bundle", ADDRESS]),
      ];
      assert.equal(here.code, 0, here.stderr);
      const same = (text: string): string =>
        text
          .replaceAll(one.file, "PLACE")
          .replaceAll(ADDRESS, "PLACE")
          .replace(/ changed \d+ s ago/, " changed just now");
      assert.deepEqual([there.code, same(there.stdout)], [0, same(here.stdout)], there.stderr);
    }
  });

  test("sessions --bundle lists the bundles below a prefix, and an invalid one hides no other", async () => {
    await using one = await held();
    const { objects } = one.bucket;
    const [bundle] = [...objects.values()];
    assert.ok(bundle !== undefined);
    objects.set("of/a batch/patch", bundle);
    objects.set("of/a batch2/s.tar", bundle);
    const list = async (
      place: string,
    ): Promise<{ readonly ended: Ended; readonly bundles: readonly string[] }> => {
      const ended = await one.read(["sessions", "--bundle", place, "--json"]);
      const lines = ended.stdout.split("\n").filter((line) => line !== "");
      return {
        ended,
        bundles: lines.map((line) => (JSON.parse(line) as { readonly bundle: string }).bundle),
      };
    };
    for (const place of [`s3://${BUCKET}/of/a batch`, `s3://${BUCKET}/of/a batch/`, ADDRESS]) {
      const { ended, bundles } = await list(place);
      assert.deepEqual([ended.code, bundles], [0, [ADDRESS]], ended.stderr);
    }
    objects.set("of/bad.tar", { bytes: Buffer.from("none"), changed: 1 });
    const { ended, bundles } = await list(`s3://${BUCKET}`);
    assert.deepEqual([ended.code, bundles.length], [1, 2]);
    assert.match(ended.stderr, /^warning: s3:\/\/results-of-team\/of\/bad\.tar is not a session bundle/m);
    const none = await list(`s3://${BUCKET}/nowhere`);
    assert.equal(none.ended.code, 2);
    assert.match(
      none.ended.stdout + none.ended.stderr,
      /there is no session bundle in s3:\/\/results-of-team\/nowhere/,
    );
  });

  test("a changed object is refused like a changed file, and an unavailable one has a reason and a next step", async () => {
    await using one = await held();
    const refused = async (
      place: string,
      env: Readonly<Record<string, string>> = {},
    ): Promise<readonly [code: number | null, said: string]> => {
      const { code, stdout, stderr } = await one.read(["replay", "--bundle", place], env);
      return [code, stdout + stderr];
    };
    const cases: readonly (readonly [string, Readonly<Record<string, string>>, RegExp])[] = [
      [`s3://${BUCKET}/of/`, {}, /is not the address of an object[^]*harness sessions --bundle/],
      [`${ADDRESS}x`, {}, /cannot read s3:\/\/.*: it does not exist/],
      ["s3://Team/x.tar", {}, /3 to 63 lower-case letters/],
      [
        ADDRESS,
        { AWS_SECRET_ACCESS_KEY: "" },
        /AWS_SECRET_ACCESS_KEY is not set[^]*export AWS_SECRET_ACCESS_KEY/,
      ],
      [ADDRESS, { AWS_REGION: "us-west-9" }, /is in the region eu-test-1[^]*export AWS_REGION=eu-test-1/],
    ];
    for (const [place, env, says] of cases) {
      const [code, said] = await refused(place, env);
      assert.equal(code, 2, said);
      assert.match(said, says);
    }
    const bytes = Buffer.from(one.bucket.objects.get(KEY)?.bytes ?? "");
    // Within the manifest, after its header.
    bytes[600] = (bytes[600] ?? 0) ^ 1;
    one.bucket.objects.set(KEY, { bytes, changed: 1 });
    const [code, said] = await refused(ADDRESS);
    assert.equal(code, 1, said);
    assert.match(said, /its part manifest\.json was changed after it was written/);
  });
});
