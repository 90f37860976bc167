// also slow: a reader that stalls on every renderer
import assert from "node:assert/strict";
import { Writable } from "node:stream";
import test from "node:test";
import { inspect } from "node:util";
import type { EventBody } from "../../src/core/events.ts";
import {
  type Renderer,
  rendererFor,
  RENDERERS,
  type RendererName,
  rendererNamed,
} from "../../src/render/renderers.ts";
import { isPlainWanted, Output } from "../../src/render/tty/output.ts";
import { fakeClock } from "../fakes/terminal.ts";
import { activeBesideEmoji, filled, HOSTILE_TEXTS, HUGE } from "../fixtures/hostile.ts";
import { EVERY_EVENT, stamped } from "../fixtures/events.ts";
import { slowTest } from "../fixtures/slow-test.ts";

interface Screen {
  readonly renderer: Renderer;
  /** Bytes of stdout and of stderr. */
  readonly written: () => string;
  readonly writes: () => number;
  readonly waiting: () => number;
  readonly pass: (ms: number) => void;
  /** Lets the reader continue. */
  readonly read: () => void;
}

interface Kind {
  readonly columns?: number;
  readonly colours?: boolean;
  /** Whether the reader reads nothing. */
  readonly stuck?: boolean;
}

function screenOf(name: RendererName, { columns, colours = false, stuck = false }: Kind): Screen {
  let all = "";
  let writes = 0;
  const held: (() => void)[] = [];
  const state = { stuck };
  const sink = new Writable({
    decodeStrings: false,
    write: (text: string, _encoding, done) => {
      all += text;
      if (state.stuck) held.push(done);
      else done();
    },
  });
  const write = sink.write.bind(sink);
  const about = {
    columns,
    isTTY: columns !== undefined,
    getColorDepth: () => (colours ? 8 : 1),
    write: (text: string) => {
      writes += 1;
      return write(text);
    },
  };
  const stream = new Output(Object.assign(sink, about) as unknown as NodeJS.WriteStream);
  if (name === "plain") stream.becomePlain();
  const { clock, pass } = fakeClock();
  const parts = {
    stdout: stream,
    stderr: stream,
    clock,
    clean: (text: string) => text,
    changes: "here" as const,
  };
  return {
    renderer: rendererNamed(name, parts),
    written: () => all,
    writes: () => writes,
    waiting: () => sink.writableLength,
    pass,
    read: () => {
      state.stuck = false;
      for (let next = held.shift(); next !== undefined; next = held.shift()) next();
    },
  };
}

const KINDS: readonly Kind[] = [
  { columns: 40 },
  { columns: 40, colours: true },
  { columns: 100 },
  { columns: 100, colours: true },
  {},
];

const call = (id: string, tool: string, args: Readonly<Record<string, unknown>>): readonly EventBody[] => [
  { type: "call.proposed", call: id, tool, args },
  { ...EVERY_EVENT["call.decided"], call: id, decision: "allow", by: "policy" },
  { type: "call.ended", call: id, kind: "ok", cause: null, text: "a\n", full: null, ms: 5 },
];

/** A run with one event of each kind, and some more calls. */
const LIST: readonly EventBody[] = [
  { ...EVERY_EVENT["run.started"], max_turns: 40 },
  ...call("k1", "bash", { command: "ls -la src" }),
  ...Object.values(EVERY_EVENT).filter(({ type }) => !["run.started", "run.finished"].includes(type)),
  ...call("k2", "read_file", { path: "src/a.ts" }),
  EVERY_EVENT["run.finished"],
];

/** Plays events, with half a second after each. */
function played(name: RendererName, kind: Kind, bodies: readonly EventBody[]): string {
  const { renderer, written, pass } = screenOf(name, kind);
  for (const event of stamped(bodies)) {
    renderer.take(event);
    pass(500);
  }
  renderer.end();
  return written();
}

/** The bytes as text, with escape sequences made visible. */
const shownBytes = (bytes: string): string =>
  bytes.replaceAll("\u001B", "\u241B").replaceAll("\r", "\u240D\n").replaceAll("`", "'");

for (const name of RENDERERS)
  test(`${name} shows a fixed list of events with the same bytes as before`, (t) => {
    const screens = KINDS.map((kind) => `${inspect(kind)}\n${shownBytes(played(name, kind, LIST))}`);
    t.assert.snapshot(screens.join("\n\n"), { serializers: [String] });
  });

/** Our own sequences: colours, and the return to the start of an empty line. */
const OURS = /\r\u001B\[2K|\u001B\[\d{1,2}m/g;

/** The same events with this text in every field for untrusted text. */
const with_ = (text: string): readonly EventBody[] => filled(LIST, text, FIXED);

/** Fields with a fixed set of values. */
const FIXED: ReadonlySet<string> = new Set(
  "type kind status decision by mode trigger when said for tier verdict call intent cause from purpose outcome did event source ecosystem at".split(
    " ",
  ),
);

for (const name of RENDERERS)
  test(`${name} lets no part of a hostile text act on the terminal`, () => {
    for (const text of HOSTILE_TEXTS)
      for (const kind of KINDS) {
        const bytes = played(name, kind, with_(text));
        assert.ok(bytes.length > 0);
        const about = `${inspect(text.slice(0, 20))} ${inspect(kind)}`;
        assert.equal(activeBesideEmoji(bytes, true), undefined, about);
      }
  });

for (const name of RENDERERS)
  test(`${name} lets no part of a huge text act on the terminal`, () => {
    for (const text of HUGE) {
      const some = with_(text).filter(({ type }) =>
        ["run.started", "notice", "call.proposed", "call.ended", "model.finished"].includes(type),
      );
      const bytes = played(name, { columns: 100, colours: true }, some.slice(0, 8));
      assert.equal(activeBesideEmoji(bytes, true), undefined);
    }
  });

test("lines stay within the terminal's width, whatever a text contains", () => {
  for (const name of ["tty", "plain"] as const) {
    const call = {
      type: "call.proposed",
      call: "k1",
      tool: "bash",
      args: { command: "y".repeat(2 ** 20) },
    } as const;
    const [, decided, ended] = LIST.slice(1, 4);
    assert.ok(decided !== undefined && ended !== undefined);
    const bytes = played(name, { columns: 40 }, [EVERY_EVENT["run.started"], call, decided, ended]);
    for (const line of bytes.replaceAll(OURS, "\n").split("\n"))
      assert.ok(line.length <= 40, line.slice(0, 80));
  }
});

/** One second of a busy run: 10,000 events. */
function* busy(): Generator<EventBody> {
  for (let at = 0; at < 10_000; at += 5) {
    yield { type: "text", text: `piece ${at} of a reply\n` };
    yield { type: "thinking", text: "hm\n" };
    yield* call(`c${at}`, "bash", { command: `echo ${at}` });
  }
}

/** The most writes in that second: four frames of at most 21 writes, and two ticks of the live line. */
const MOST_WRITES = 4 * 21 + 2;

test("10,000 events a second cause a bounded number of writes, and all of them arrive", () => {
  for (const name of RENDERERS) {
    const { renderer, writes, written, pass } = screenOf(name, { columns: 100 });
    let at = 0;
    for (const event of stamped([...busy()])) {
      renderer.take(event);
      at += 1;
      if (at % 2500 === 0) pass(250);
    }
    renderer.end();
    assert.ok(writes() <= MOST_WRITES, `${name}: ${writes()} writes`);
    if (name !== "quiet") assert.match(written(), /echo 9995/);
    assert.doesNotMatch(written(), /left out/);
  }
});

slowTest("a stalled reader blocks nothing, and the backlog is bounded", () => {
  for (const name of RENDERERS) {
    const { renderer, waiting, writes, written, pass, read } = screenOf(name, { columns: 100, stuck: true });
    for (let second = 0; second < 9; second += 1)
      for (const event of stamped([...busy()])) {
        renderer.take(event);
        if (event.seq % 2500 === 0) pass(250);
      }
    // The stream holds the last written frame, and the one that reported it as full.
    assert.ok(waiting() <= 2 ** 20, `${name}: ${waiting()} wait in the stream`);
    assert.ok(writes() <= 2 * MOST_WRITES, `${name}: ${writes()} writes`);
    renderer.take({ ...EVERY_EVENT["run.finished"], run: "r", seq: 1_000_000 });
    renderer.end();
    read();
    assert.ok(written().length <= 18 * 2 ** 20, `${name}: ${written().length}`);
    if (name === "jsonl") {
      const events = written()
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line) as EventBody);
      assert.equal(events.at(-1)?.type, "run.finished");
      const notices = events.flatMap((event) => (event.type === "notice" ? [event.text] : []));
      assert.ok(notices.some((text) => /^\d+ events are left out here/.test(text)));
    } else if (name !== "quiet") assert.match(written(), /\d+ messages were left out here/);
  }
});

test("the plain renderer has no marks, no colours and no cursor moves", () => {
  for (const kind of KINDS) {
    const bytes = played("plain", kind, LIST);
    assert.doesNotMatch(bytes, /[\u001B\r✓✗▸⊘≡│]/);
    assert.match(bytes, /^done: bash ls -la src/m);
  }
  assert.match(played("tty", { columns: 100 }, LIST), /✓ bash ls -la src/);
});

const choose = (json: boolean, quiet: boolean, plain: boolean): RendererName =>
  rendererFor({ json, quiet }, { plain });
const wanted = (plain: boolean, isTTY: boolean, TERM: string): boolean =>
  isPlainWanted({ plain, isTTY, env: { TERM } });

test("flags and the terminal choose the renderer", () => {
  assert.equal(choose(false, false, false), "tty");
  assert.equal(choose(false, false, true), "plain");
  assert.equal(choose(false, true, true), "quiet");
  assert.equal(choose(true, true, true), "jsonl");
  assert.equal(wanted(true, true, "xterm"), true);
  assert.equal(wanted(false, true, "xterm"), false);
  assert.equal(wanted(false, true, "dumb"), true);
  assert.equal(wanted(false, false, "dumb"), false, "a pipe has no cursor to move");
});

const isRedrawn = (): boolean => played("tty", { columns: 100 }, LIST).includes("\u001B[2K");

test("in CI a terminal is not redrawn", () => {
  assert.equal(isRedrawn(), true);
  process.env["CI"] = "true";
  try {
    assert.equal(isRedrawn(), false);
  } finally {
    delete process.env["CI"];
  }
});
