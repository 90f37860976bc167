import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { constants } from "node:fs";
import { chmod, link, mkdir, open, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import test from "node:test";
import { skip } from "../../fixtures/engine.ts";
import { Room } from "../../fixtures/escape.ts";

/** Programs of the host that listen in the workspace; they count who came. */
class Listeners implements AsyncDisposable {
  came = 0;
  readonly #servers: Server[] = [];

  async at(file: string): Promise<void> {
    const server = createServer((socket) => {
      this.came += 1;
      socket.end("host\n");
    });
    this.#servers.push(server);
    await new Promise<void>((resolve) => server.listen(file, resolve));
    await chmod(file, 0o777);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const server of this.#servers) await new Promise((resolve) => server.close(resolve));
  }
}

const CONNECT = `connect() { perl -MIO::Socket::UNIX -e 'my $s = IO::Socket::UNIX->new(Peer => $ARGV[0]) or die "refused: $!\\n"; print <$s>' "$1"; }`;

test("sockets and FIFOs of the host lead nowhere, in any mode and by any path", { skip }, async () => {
  await using listeners = new Listeners();
  await using room = await Room.make(async ({ at }) => {
    await mkdir(at("run/deep"), { recursive: true });
    for (const name of ["run/deep/s.sock", ".git/fsmonitor--daemon.ipc", "top.sock"])
      await listeners.at(at(name));
    execFileSync("mkfifo", [at("run/pipe")]);
    await chmod(at("run/pipe"), 0o777);
  });
  const pipe = await open(room.at("run/pipe"), constants.O_RDWR | constants.O_NONBLOCK);
  const attempts = [
    "cd {W}",
    CONNECT,
    "for s in run/deep/s.sock .git/fsmonitor--daemon.ipc top.sock; do connect $s; connect {W}/$s; (cd $(dirname $s) && connect $(basename $s)); done",
    "mv top.sock moved.sock; connect moved.sock; ln top.sock linked.sock; connect linked.sock",
    "mv run gone; connect gone/deep/s.sock; mv gone run; rm -f top.sock run/pipe; connect top.sock",
    "timeout 2 sh -c 'echo from-the-box > run/pipe'; connect /proc/self/cwd/top.sock; true",
  ].join("\n");
  for (const mode of ["workspace-write", "read-only"] as const) {
    const { code, all } = await room.exec(attempts, { mode });
    assert.equal(code, 0, all);
    assert.doesNotMatch(all, /^host/m);
  }
  assert.equal(listeners.came, 0);
  await assert.rejects(pipe.read(Buffer.alloc(64), 0, 64, null), /EAGAIN/);
  await pipe.close();
  assert.match(room.warnings.join("\n"), /4 sockets and FIFOs are covered/);
  const own = [
    CONNECT,
    "cd {W} && echo x > run/file && echo x > run/deep/file",
    `serve() { perl -MIO::Socket::UNIX -e 'my $s = IO::Socket::UNIX->new(Local => $ARGV[0], Listen => 1) or die "$!"; my $c = $s->accept; print $c "own\\n"' "$1"; }`,
    'for s in {W}/run/own.sock /tmp/own.sock; do serve $s & until [ -S $s ]; do sleep 0.05; done; [ "$(connect $s)" = own ] || exit 3; wait; rm $s; done',
    'mkfifo run/own && (echo through > run/own &) && [ "$(cat run/own)" = through ] && rm run/own',
  ].join("\n");
  const { code, all } = await room.exec(own);
  assert.equal(code, 0, all);
  assert.equal(await readFile(room.at("run/deep/file"), "utf8"), "x\n");
});

test("a file with a hard link outside is not writable, and one linked within is", { skip }, async () => {
  await using room = await Room.make(async ({ at, CAN }) => {
    await writeFile(`${CAN}/store`, "kept\n");
    await link(`${CAN}/store`, at("linked"));
    await writeFile(at("one"), "one\n");
    await link(at("one"), at("two"));
  });
  const tries =
    "cd {W}; echo x >> linked; chmod 700 linked; truncate -s 0 linked; ln linked other && echo x >> other; mv linked away; rm -f linked; touch -d 2001-01-01 linked; true";
  await room.exec(tries);
  assert.equal(await readFile(`${room.CAN}/store`, "utf8"), "kept\n");
  await room.intact();
  const { code, all } = await room.exec(
    "cd {W} && echo more >> one && cat linked && cp linked copy && echo x >> copy",
  );
  assert.equal(code, 0, all);
  assert.equal(await readFile(room.at("two"), "utf8"), "one\nmore\n");
  assert.match(room.warnings.join("\n"), /hard links.*--isolation overlay/);
  await rm(room.at("linked"));
});
