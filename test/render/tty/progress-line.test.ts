import assert from "node:assert/strict";
import { afterEach, describe, test } from "node:test";
import { type Advance, ProgressLine } from "../../../src/render/tty/live-lines.ts";
import { fakeClock, fakeTerminal } from "../../fakes/terminal.ts";

interface Place {
  /** Undefined for a pipe. */
  readonly columns?: number;
  readonly colours?: boolean;
  readonly plain?: boolean;
  readonly quiet?: boolean;
}

function progressIn({ columns, colours = false, plain = false, quiet = false }: Place) {
  const terminal = fakeTerminal(columns, colours);
  if (plain) terminal.stream.becomePlain();
  const time = fakeClock();
  const line = new ProgressLine(terminal.stream, { what: "indexing", quiet, clock: time.clock });
  /** Advances by this many seconds, with this much done in each. */
  const goOn = (seconds: number, perSecond: number, rest: Advance): void => {
    for (let at = 1; at <= seconds; at += 1) {
      line.take({ ...rest, done: at * perSecond });
      time.pass(500);
      time.pass(500);
    }
  };
  return { ...terminal, ...time, line, goOn };
}

/** The line after eight seconds. */
function after(place: Place, perSecond: number, rest: Advance): string {
  const { goOn, seen } = progressIn(place);
  goOn(8, perSecond, rest);
  return seen().at(-1) ?? "";
}

const FILES = { total: 2000, unit: "files" };
const BYTES = { total: 4 * 2 ** 30, unit: "bytes", now: "qwen3:8b" };
const STEPS = { total: 20, unit: "steps", now: "npm ci", steady: false };

describe("on a terminal progress is one line that fits", () => {
  const FILES_AT = [
    [120, `indexing [#####...................] 20 % 400 of 2000 files, 50 a second, 32.0 s left`, "  8 s"],
    [80, `indexing [#####...................] 20 % 400 of 2000 files, 50 a second`, "  8 s"],
    [60, `indexing 20 % 400 of 2000 files, 50 a second`, "  8 s"],
    [40, `indexing 20 % 400 of 2000 files`, "  8 s"],
    [20, `indexing 20 %`, "  8 s"],
  ] as const;
  for (const [columns, left, right] of FILES_AT)
    test(`of ${columns} columns`, () => {
      const line = after({ columns }, 50, FILES);
      // A terminal writes `^C` behind it, and wraps when its last column is written.
      const width = columns - (columns < 40 ? 1 : 3);
      assert.equal(line, left.padEnd(width - right.length) + right);
      assert.equal(line.length, width);
    });

  test("bytes are shown by size, with the rate and the name", () => {
    const line = after({ columns: 120 }, 64 * 2 ** 20, BYTES);
    assert.match(
      line,
      /^indexing \[###\.{21}\] 12 % 512 MiB of 4\.0 GiB, 64 MiB a second, 56\.0 s left {2}qwen3:8b +8 s$/,
    );
  });

  test("no estimate is given for steps of unequal length", () => {
    assert.match(after({ columns: 120 }, 1, STEPS), /\] 40 % 8 of 20 steps {2}npm ci +8 s$/);
  });

  test("without a total the line shows what is done and for how long", () => {
    assert.match(after({ columns: 60 }, 0, { now: "unpacking" }), /^indexing: unpacking +8 s$/);
  });
});

test("the builder's own output gives the current step and the number of steps", () => {
  const { line, pass, seen } = progressIn({ columns: 80 });
  line.line("Step 3/20 : RUN make");
  pass(500);
  assert.match(seen().at(-1) ?? "", /10 % 2 of 20 steps {2}RUN make/);
  line.line("gcc -c a.c");
  pass(500);
  assert.match(seen().at(-1) ?? "", /10 % 2 of 20 steps {2}gcc -c a\.c +1 s/);
});

test("frequent updates are drawn only by time", () => {
  const { line, pass, written } = progressIn({ columns: 80 });
  for (let done = 0; done < 5000; done += 1) line.take({ done, total: 5000, unit: "files" });
  assert.equal(written(), "", "something that is over in a moment is not shown");
  pass(500);
  assert.equal(written().match(/indexing/g)?.length, 1);
});

test("a permanent line is written above, and the progress line disappears at its end", () => {
  const { line, pass, seen, running } = progressIn({ columns: 80 });
  line.take({ done: 1, total: 3, unit: "runs" });
  pass(1000);
  line.write("1/3 solved\n");
  const [first, second = ""] = seen();
  assert.deepEqual([first, second.startsWith("indexing [")], ["1/3 solved", true]);
  line.end();
  assert.deepEqual(seen(), ["1/3 solved", ""]);
  assert.equal(running(), false);
});

test("the line is not drawn while a person is asked, and is drawn again afterwards", () => {
  const { line, pass, seen } = progressIn({ columns: 80 });
  pass(1000);
  const resume = line.pause();
  assert.equal(seen().at(-1), "");
  pass(1000);
  assert.equal(seen().at(-1), "");
  resume();
  pass(1000);
  assert.match(seen().at(-1) ?? "", /^indexing +3 s$/);
});

const BOTH = "indexing …\nindexing: ended after 8 s (400 of 2000 files)\n";
const inLines = (place: Place): string => {
  const { goOn, line, written } = progressIn(place);
  goOn(8, 50, FILES);
  line.end();
  return written();
};

describe("where no line can be rewritten, progress has a start and an end", () => {
  afterEach(() => {
    delete process.env["CI"];
    process.env["TERM"] = "xterm";
  });

  test("in a pipe", () => assert.equal(inLines({}), BOTH));
  test("with --plain", () => assert.equal(inLines({ columns: 80, plain: true }), BOTH));
  test("in CI", () => {
    process.env["CI"] = "true";
    assert.equal(inLines({ columns: 80 }), BOTH);
  });
  test("on a dumb terminal", () => {
    process.env["TERM"] = "dumb";
    assert.equal(inLines({ columns: 80 }), BOTH);
  });

  test("when the work is complete, the last step counts as done", () => {
    const { line, pass, written } = progressIn({});
    line.take({ done: 1, total: 2, unit: "steps" });
    pass(8000);
    line.complete();
    assert.match(written(), /^indexing: ended after 8 s \(2 of 2 steps\)$/m);
  });

  test("the end is written once, however often it is ended", () => {
    const { goOn, line, written } = progressIn({});
    goOn(8, 50, FILES);
    line.end();
    line[Symbol.dispose]();
    assert.equal(written(), BOTH);
  });

  test("something that is over in a moment has neither start nor end", () => {
    const { line, written } = progressIn({});
    line.take({ done: 3, total: 3, unit: "files" });
    line.end();
    assert.equal(written(), "");
  });
});

test("with --quiet nothing is written, not even on a terminal", () => {
  for (const columns of [80, undefined]) {
    const { goOn, line, written } = progressIn({
      quiet: true,
      ...(columns === undefined ? {} : { columns }),
    });
    goOn(8, 50, FILES);
    line.end();
    assert.equal(written(), "");
  }
});

test("colours are used where they are supported", () => {
  for (const colours of [true, false]) {
    const { pass, written } = progressIn({ columns: 80, colours });
    pass(500);
    assert.equal(written(), colours ? "\u001B[2mindexing\u001B[22m" : "indexing");
  }
});
