// alone: it forks without an end
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import test from "node:test";
import { skip } from "../fixtures/engine.ts";
import { type Attack, attacks, isThere, never } from "../fixtures/escape-cases.ts";
import { Room } from "../fixtures/escape.ts";
import { python } from "./kernel-calls.ts";

/** No command's process is left in the box: only the first one, this call's supervisor and ps. */
async function alone(room: Room): Promise<void> {
  const { all } = await room.exec("ps axo pid,args --no-headers");
  assert.equal(all.trim().split("\n").length, 3, all);
}

/** Whether a file in the workspace still grows after the call that began it. */
async function still(room: Room, file: string): Promise<void> {
  const size = (): Promise<number> =>
    readFile(room.at(file)).then(
      ({ length }) => length,
      () => 0,
    );
  const before = await size();
  assert.ok(before > 0, "it never wrote");
  await sleep(400);
  assert.equal(await size(), before, `${file} grows after the end of its call`);
}

/** By itself, before the time that every call has. */
const endedSoon: Attack["denied"] = (_, { result }) => assert.equal(result?.timed_out, false);

/** PID 1 lives: the twins run in the same box. */
const RUNNER: readonly Attack[] = [
  {
    name: "every signal to the first process",
    run: "for s in $(seq 1 64); do kill -$s 1 2>/dev/null; done; kill -STOP 1; kill -KILL 1; sleep 0.3; ps -o stat= -p 1",
    // Running or waiting; neither stopped nor ended.
    denied: (_, { all }) => assert.match(all, /^[SDR]/),
    twin: "sleep 100 & kill -TERM $!; wait $!; test $? = 143",
  },
  {
    name: "a forged frame in the first process's stdout, and bytes in its stdin",
    run: "for f in /proc/1/fd/0 /proc/1/fd/1 /proc/1/fd/2 /proc/1/fd/4; do (printf '\\1\\0\\0\\0forged' > $f) 2>/dev/null && echo WROTE; done; ls /proc/1/fd | sed 's/^/FD /'; true",
    denied: never(/WROTE|FD|forged/),
    twin: "printf x > /proc/self/fd/1",
    control: true,
  },
  {
    name: "private data of the first process: memory, environment, folders, program",
    run: `for f in mem environ maps auxv syscall stack io pagemap smaps; do (head -c 1 /proc/1/$f) >/dev/null 2>&1 && echo READ $f; done
for l in exe cwd root ns/net; do readlink /proc/1/$l && echo LINK $l; done; ls /proc/1/root/ 2>/dev/null | head -1; true`,
    denied: (_, { all }) => assert.equal(all, ""),
    twin: "head -c 1 /proc/self/environ /proc/self/maps > /dev/null && readlink /proc/self/exe",
    control: true,
  },
  {
    name: "settable properties of a process: its OOM score, its name, its limits",
    run: `before=$(cat /proc/1/oom_score_adj /proc/1/comm); for f in oom_score_adj comm timerslack_ns coredump_filter clear_refs; do (echo 100 > /proc/1/$f) 2>/dev/null && echo WROTE $f; done
prlimit --pid 1 --nofile=10 2>/dev/null && echo LIMITED; renice 19 1 >/dev/null 2>&1 && echo LAST; chrt -i -p 0 1 && echo IDLE; taskset -cp 0 1 >/dev/null 2>&1 && echo PINNED; ionice -c 3 -p 1 2>/dev/null && echo STARVED; ionice -c 3 -u $(id -u) 2>/dev/null && echo STARVED; [ "$before" = "$(cat /proc/1/oom_score_adj /proc/1/comm)" ] || echo CHANGED; grep -h 'open files' /proc/1/limits; true`,
    denied: never(/WROTE|LIMITED|LAST|IDLE|PINNED|STARVED|CHANGED|open files +10 /),
    twin: "echo 1000 > /proc/self/oom_score_adj && prlimit --nofile=100 true && nice -n 5 chrt -i 0 true && taskset -c 0 true && ionice -c 3 true && ulimit -n 90",
    control: true,
  },
  {
    name: "the runner's program: changed, started a second time",
    run: "r=/usr/local/lib/harness/runner; timeout 2 $r </dev/null; echo $?; (echo x >> $r) 2>/dev/null && echo WROTE; rm -f $r 2>/dev/null && echo GONE; true",
    denied: (_, { all }) => assert.equal(all, "64\n"),
    twin: "head -c 4 /bin/true > /tmp/head",
  },
  {
    name: "tracing: the first process, the supervisor, a neighbour",
    run: `sleep 3 & ${python(`
import subprocess
target = int(subprocess.run(["pgrep", "-n", "sleep"], capture_output=True, text=True).stdout)
print(*[call(101, 117, 0x4206, pid, 0, 0) for pid in (1, os.getppid(), target)], sep="\\n")
print(call(101, 117, 16, target, 0, 0))`)}; ps -o stat= -C sleep; kill %1`,
    denied: (_, { all }) => assert.match(all, /^(EPERM\n){4}S/),
    twin: "sleep 30 & kill %1",
    control: true,
  },
  {
    name: "the supervisor: its status pipe, memory and environment",
    run: `for f in /proc/$PPID/fd/* /proc/$PPID/mem; do (printf '\\2\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0' > $f) 2>/dev/null && echo WROTE $f; done; head -c 1 /proc/$PPID/environ 2>/dev/null && echo READ; exit 7`,
    denied: (_, { code, all }) => assert.deepEqual([code, all], [7, ""]),
    twin: "ps -o args= -p $PPID",
  },
  {
    name: "the supervisor killed",
    run: "sleep 1000 & setsid sleep 1001 & kill -KILL $PPID; sleep 1002; echo never",
    denied: async (room, ran) => {
      assert.ok(ran.code !== 0 && ran.result?.killed === true, "a forced end is reported");
      await endedSoon(room, ran);
      await alone(room);
    },
    twin: "true",
  },
  {
    name: "the supervisor stopped, its command ended",
    call: { timeoutMs: 1500 },
    run: "(sleep 1000 &); kill -STOP $PPID; sleep 0.1; exit 0",
    denied: async (room, ran) => {
      assert.notEqual(ran.code, 0, "an unobserved end is not a success");
      await alone(room);
    },
    twin: "sleep 1000 & kill -STOP $!; kill -KILL $!",
  },
  {
    name: "everything killed at once: kill -1",
    run: "sleep 1000 & kill -KILL -1; echo never",
    denied: async (room, ran) => {
      assert.notEqual(ran.code, 0);
      await endedSoon(room, ran);
      await alone(room);
    },
    twin: "kill -0 $$",
  },
];

const writes = "while :; do echo x >> grow.log; sleep 0.02; done";
const written = "until [ -s grow.log ]; do sleep 0.02; done";
const DAEMONS: Readonly<Record<string, string>> = {
  "nohup and disown": `nohup bash -c '${writes}' >/dev/null 2>&1 & disown`,
  setsid: `setsid -f bash -c '${writes}' >/dev/null 2>&1 </dev/null`,
  "double fork": `( ( (${writes}) >/dev/null 2>&1 </dev/null & ) & )`,
  "a job that holds the output open": `(${writes}) & true`,
  "ignoring every signal it can ignore": `(trap '' HUP INT TERM QUIT PIPE USR1 USR2 CHLD; ${writes}) >/dev/null 2>&1 &`,
  "its own reaper": `python3 -c '
import ctypes, os, subprocess, time
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0: os.execvp("bash", ["bash", "-c", "${writes}"])
    os._exit(0)
time.sleep(0.2)' >/dev/null 2>&1 & sleep 0.2`,
  stopped: `bash -c '${writes}' >/dev/null 2>&1 & ${written}; kill -STOP $!`,
};

attacks([
  ...RUNNER,
  ...Object.entries(DAEMONS).map(([name, line]): Attack => ({
    name: `a daemon: ${name}`,
    run: `${line}\n${written}; echo ok`,
    denied: async (room, ran) => {
      assert.deepEqual([ran.code, ran.all], [0, "ok\n"]);
      await endedSoon(room, ran);
      assert.ok((ran.result?.leftovers ?? 0) >= 1, "what was left is counted");
      await still(room, "grow.log");
      await alone(room);
    },
    twin: `(for i in 1 2 3; do echo x >> grow.log; done) & wait; test $(wc -l < grow.log) = 3 || test $(wc -l < grow.log) -gt 3`,
  })),
]);

const COMET = `cat > /tmp/comet.c <<'END'
#include <unistd.h>
int main(void) { setsid(); for (int i = 0; i < 400000; i++) if (fork() > 0) _exit(0); return 0; }
END
cc -O -o /tmp/comet /tmp/comet.c && cp /tmp/comet comet`;

/** It forks and exits again and again, so any list of processes is already outdated. */
test(
  "a process that forks and exits all the time is caught, alone and beside another call, which continues",
  { skip },
  async () => {
    await using room = await Room.make();
    assert.equal((await room.exec(COMET)).code, 0);
    const caught = async (): Promise<void> => {
      const { result } = await room.exec("./comet; sleep 30", { timeoutMs: 500 });
      assert.equal(result?.timed_out, true);
      const { all } = await room.exec("pgrep -c comet; true");
      assert.equal(all.trim(), "0");
    };
    await caught();
    const beside = room.exec("sleep 6; echo through");
    await caught();
    assert.equal((await beside).all, "through\n");
  },
);

test("when one call kills the other this is reported, and the box continues", { skip }, async () => {
  await using room = await Room.make();
  const victim = room.exec("touch up; sleep 60; echo never");
  while (!(await isThere(room.at("up")))) await sleep(20);
  const { code } = await room.exec(
    "pkill -KILL -f 'sleep 60'; pkill -KILL -x sleep; for p in $(pgrep -x runner); do kill -KILL $p; done; true",
  );
  assert.notEqual((await victim).code, 0);
  assert.doesNotMatch((await victim).all, /never/);
  assert.notEqual(code, null);
  assert.deepEqual([(await room.exec("echo fine")).all], ["fine\n"]);
});

test("a call cannot forge the end of another one", { skip }, async () => {
  await using room = await Room.make();
  const victim = room.exec("touch up; sleep 1; echo mine; exit 3");
  // Between a runner's fork and its exec of bash a process is named runner: what is written to then is bash's own output.
  while (!(await isThere(room.at("up")))) await sleep(20);
  const forger = `for p in $(pgrep -x runner); do [ $p = $PPID ] || for f in /proc/$p/fd/*; do (printf '\\2\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0' > $f) 2>/dev/null && echo WROTE; done; done; true`;
  assert.doesNotMatch((await room.exec(forger)).all, /WROTE/);
  const { code, all } = await victim;
  assert.deepEqual([code, all], [3, "mine\n"]);
});

test("keys in the harness's own environment stay there", { skip }, async () => {
  await using room = await Room.make();
  const env = {
    OPENAI_API_KEY: "canary-1",
    HARNESS_API_KEY: "canary-2",
    HTTP_PROXY: "http://canary-3.invalid",
  };
  const line =
    "printenv OPENAI_API_KEY; printenv HARNESS_API_KEY; tr '\\0' '\\n' < /proc/1/environ; tr '\\0' '\\n' < /proc/$PPID/environ; env; echo seen; true";
  const { stdout, stderr } = await room.harness(["sandbox", "exec", "--", "bash", "-lc", line], env);
  assert.match(stdout, /^PATH=[^]*seen\n$/m);
  assert.doesNotMatch(stdout + stderr, /canary/);
});
