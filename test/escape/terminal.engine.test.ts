import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { rename, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { COMPILED } from "../fixtures/cli.ts";
import { ROOT, skip } from "../fixtures/engine.ts";
import { isThere } from "../fixtures/escape-cases.ts";
import { Room } from "../fixtures/escape.ts";

const quoted = (word: string): string => `'${word.replaceAll("'", String.raw`'\''`)}'`;

/** The bytes that a person's terminal gets from a program, through a pseudo-terminal of script(1). */
async function onTerminal(room: Room, words: readonly string[], cwd = room.W): Promise<Buffer> {
  const file = path.join(room.root, "home", "line.sh");
  await writeFile(file, `cd ${quoted(cwd)}\n${words.map((word) => quoted(room.filled(word))).join(" ")}\n`);
  const home = path.join(room.root, "home");
  const state = path.join(room.root, "state");
  const env = {
    ...COMPILED,
    PATH: process.env["PATH"],
    HOME: home,
    XDG_STATE_HOME: state,
    NO_COLOR: "1",
    TERM: "xterm",
  };
  const child = spawn("script", ["-qec", `sh ${file}`, "/dev/null"], { env, timeout: 30_000 });
  const seen: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => seen.push(chunk));
  // Its input stays open: at an end of it script would type Ctrl-D.
  await new Promise((resolve) => child.once("close", resolve));
  child.stdin.destroy();
  return Buffer.concat(seen);
}

const HARNESS = path.join(ROOT, "bin/harness");
const exec = (command: string): readonly string[] => [
  HARNESS,
  "sandbox",
  "exec",
  "--",
  "bash",
  "-c",
  command,
];

/** Controls but line ends and tabs, directions, invisible and tag characters. */
const ACTIVE =
  /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u00AD\u061C\u200B-\u200F\u2028-\u202E\u2060-\u206F\uFEFF]|[\u{E0000}-\u{E0FFF}]/u;

function assertInert(bytes: Buffer): string {
  const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes).replaceAll("\r\n", "\n");
  assert.doesNotMatch(text, ACTIVE, JSON.stringify(text));
  return text;
}

interface Shown {
  readonly name: string;
  readonly command: string;
  /** The bytes that the command sends, one character a byte. */
  readonly sent: string;
  /** What a person reads of it. */
  readonly words: RegExp;
}

const SHOWN: readonly Shown[] = [
  {
    name: "a window title, colours and a cursor move",
    command: String.raw`printf '\033]2;sudo password:\007\033[31mred\033[0m\033[5;1H'`,
    sent: "\x1b]2;sudo password:\x07",
    words: /sudo password:.*red/,
  },
  {
    name: "controls on the error output, and clipboard and answer-back requests",
    command: String.raw`printf '\033]52;c;cm0gLXJm\007\033[6n\033[c\033P$qm\033\\tail' >&2`,
    sent: "\x1b]52;c;cm0gLXJm\x07",
    words: /52;c;cm0gLXJm.*tail/,
  },
  {
    name: "8-bit control characters, in UTF-8 and raw",
    command: String.raw`printf '\302\2332J \233 2J \302\235 0;x \302\205 end\n'`,
    sent: "\xc2\x9b2J \x9b 2J",
    words: /2J.*end/,
  },
  {
    name: "a line overwritten with carriage returns and backspaces",
    command: String.raw`printf 'rm -rf /\rls      \n'; printf 'bad\b\b\bgood\n'`,
    sent: "rm -rf /\rls",
    words: /rm -rf \/.*ls[^]*bad.*good/,
  },
  {
    name: "directions, invisible and tag characters",
    command: String.raw`printf 'a\342\200\256b\342\200\213c\360\240\200\201\363\240\201\201d\357\273\277e\n'`,
    sent: "a\xe2\x80\xaeb\xe2\x80\x8bc",
    words: /a.*b.*c.*d.*e/,
  },
  {
    name: "a sequence in pieces, and split characters",
    command: String.raw`printf '\033'; sleep 0.2; printf ']2;title\007\302'; sleep 0.2; printf '\2332J\n\r'; sleep 0.2; printf 'end\n'`,
    sent: "\x1b]2;title\x07\xc2\x9b2J\n\rend\n",
    words: /title.*2J[^]*end/,
  },
  {
    name: "file names as programs print them",
    command: String.raw`cd /tmp; touch $'\e]2;x\a' $'red\e[31m' $'\xc2\x9b'; ls -1 --show-control-chars; ls $'no\e[2Jne'; true`,
    sent: "red\x1b[31m",
    words: /red/,
  },
];

for (const { name, command, sent, words } of SHOWN)
  test(`${name} has no effect on a terminal, and a pipe gets the bytes unchanged`, { skip }, async () => {
    await using room = await Room.make();
    assert.match(assertInert(await onTerminal(room, exec(command))), words);
    const line = exec(command).map(quoted).join(" ");
    const piped = await onTerminal(room, ["sh", "-c", `{ ${line}; } 2>&1 | od -An -v -tx1`]);
    const hex = piped.toString().replaceAll(/\s/g, "");
    assert.ok(hex.includes(Buffer.from(sent, "latin1").toString("hex")), "the command did not send them");
    assert.deepEqual(await room.boxes(), []);
  });

/** Lines of the harness's own that hold names which the box or the repository chose. */
const OWN_LINES: readonly { readonly name: string; readonly command: string; readonly words: RegExp }[] = [
  {
    name: "a planted name that was moved out",
    command: String.raw`touch $'.aider\e]2;x\a\e[31m\xc2\x9b'`,
    words: /note: .*\.aider.*moved out/,
  },
  {
    name: "a protected path that was refused",
    command: String.raw`echo x > $'.vscode/\e]2;x\a'; cp README.md $'.vscode/y\e[2J'; false`,
    words: /\.vscode/,
  },
  { name: "a missing program", command: String.raw`exec $'no\e]2;x\asuch'`, words: /such/ },
];

for (const { name, command, words } of OWN_LINES)
  test(`the harness reports ${name} without its control characters`, { skip }, async () => {
    await using room = await Room.make();
    assert.match(assertInert(await onTerminal(room, exec(command))), words);
    await room.intact();
  });

test(
  "JSON, warnings and failures over a workspace with control characters in names are harmless too",
  { skip },
  async () => {
    await using room = await Room.make();
    const odd = room.at("odd\u001B]2;x\u0007\u009B\u202E");
    await room.exec("true");
    await room.leave();
    await rename(room.at("sub"), odd);
    const json = [
      HARNESS,
      "sandbox",
      "exec",
      "--json",
      "--",
      "bash",
      "-c",
      String.raw`printf '\033[31m\302\233\342\200\256'; touch $'n\xc2\x9b'`,
    ];
    const text = assertInert(await onTerminal(room, json));
    const answer = JSON.parse(text) as {
      readonly stdout: string;
      readonly changes: { readonly added: unknown };
    };
    assert.equal(answer.stdout, "\u001B[31m\u009B\u202E");
    assert.deepEqual(answer.changes.added, ["n\u009B"]);
    assertInert(await onTerminal(room, [HARNESS, "sandbox", "exec", "--", "true"], odd));
    assertInert(await onTerminal(room, [HARNESS, "sandbox", "exec", "--cwd", `${odd}/none`, "--", "true"]));
    assertInert(await onTerminal(room, [HARNESS, "sandbox", "exec", "--", "no\u001B]2;x\u0007program"]));
    await symlink(room.CAN, `${odd}/.claude`);
    assert.match(assertInert(await onTerminal(room, exec("true"))), /odd/);
    assert.deepEqual(await room.boxes(), []);
  },
);

test("a command cannot type into the terminal that started it", { skip }, async () => {
  await using room = await Room.make();
  const typed = "touch {CAN}/made\n";
  const command = `python3 - <<'PY'
import fcntl, os
for fd in [0, 1, 2, *[os.open(p, os.O_RDWR) for p in ["/dev/tty", "/dev/pts/0", "/dev/console"] if os.access(p, os.W_OK)]]:
    for byte in ${JSON.stringify(typed)}:
        try: fcntl.ioctl(fd, 0x5412, byte.encode())
        except OSError: break
    else: print("TYPED", fd)
PY`;
  const shell = [
    "sh",
    "-c",
    `${exec(room.filled(command)).map(quoted).join(" ")}; timeout --foreground -s KILL 1 sh -i`,
  ];
  const text = (await onTerminal(room, shell)).toString();
  assert.doesNotMatch(text, /TYPED/);
  assert.equal(await isThere(`${room.CAN}/made`), false);
  await room.intact();
  const own = await room.exec("tty; test -t 0 && echo typed > typed", {
    terminal: { columns: 80, rows: 24 },
  });
  assert.equal(own.code, 0);
  assert.ok(await isThere(room.at("typed")));
});
