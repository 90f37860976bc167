import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import test from "node:test";
import { isStyled, move, Output, styleText } from "../../src/render/tty/output.ts";
import { fakeTerminal } from "../fakes/terminal.ts";
import { activeIn, ALL_HOSTILE, HOSTILE } from "../fixtures/hostile.ts";

test("control characters in a text are shown, and only our own colours and moves take effect", () => {
  const { stream, written } = fakeTerminal(80, true);
  stream.write(`${move("erase")}${styleText("red", ALL_HOSTILE, { stream })}${move("rubout")}`);
  assert.ok(written().startsWith("\r\u001B[2K\u001B[31mw0␛]52") && written().endsWith("w1\u001B[39m\b \b"));
  assert.equal(activeIn(Buffer.from(written().replaceAll("\b", "")), true), undefined);
});

test("a style within another does not end it", () => {
  const { stream, written } = fakeTerminal(80, true);
  stream.write(styleText("bold", `a ${styleText("dim", "b", { stream })} c`, { stream }));
  assert.equal(written(), "\u001B[1ma \u001B[2mb\u001B[22m\u001B[1m c\u001B[22m");
});

test("without colours no style is set, and a text that imitates our keys stays text", () => {
  const { stream, written } = fakeTerminal(80);
  assert.equal(isStyled(styleText("red", "x", { stream })), false);
  for (const forged of [
    "\u0001AAAAAAAAAAAAAAAA31\u0002",
    "\u0001\u0002",
    "\u0001erase\u0002",
    "\u00010m\u0002",
  ])
    stream.write(forged);
  assert.equal(activeIn(Buffer.from(written())), undefined, JSON.stringify(written()));
});

test("an emoji that arrives in two parts is complete in a pipe, and shown in parts on a terminal", () => {
  const [pipe, terminal] = [fakeTerminal(), fakeTerminal(80)];
  for (const { stream } of [pipe, terminal])
    for (const part of ["❤", "\uFE0F 👍", "🏽", "\uFE0F", "x\uFE0F"]) stream.write(part);
  assert.equal(pipe.written(), "❤\uFE0F 👍🏽\uFE0Fx<U+FE0F>");
  assert.equal(terminal.written(), "❤ 👍🏽x<U+FE0F>");
});

function guarded(): { readonly raw: NodeJS.WriteStream; readonly written: () => string } {
  const raw = new PassThrough() as unknown as NodeJS.WriteStream;
  const chunks: Buffer[] = [];
  raw.on("data", (chunk: Buffer) => chunks.push(chunk));
  new Output(raw).guard();
  return { raw, written: () => Buffer.concat(chunks).toString() };
}

test("text that a library writes to the stream directly is made harmless too, except for the colours of a help page", async () => {
  const { raw, written } = guarded();
  raw.write(`\u001B[1mUSAGE\u001B[22m ${HOSTILE["cursor"] ?? ""}`);
  raw.write(Buffer.from(HOSTILE["title"] ?? ""));
  await new Promise<void>((resolve) => void raw.write("", () => resolve()));
  assert.ok(written().startsWith("\u001B[1mUSAGE\u001B[22m w0␛[2J␛[1;1H␛[8mhidden"), written());
  assert.equal(activeIn(Buffer.from(written()), true), undefined);
});

test("readline can edit its line, and do nothing else", async () => {
  const raw = new PassThrough() as unknown as NodeJS.WriteStream;
  const chunks: Buffer[] = [];
  raw.on("data", (chunk: Buffer) => chunks.push(chunk));
  const { editor } = new Output(raw);
  await new Promise<void>(
    (resolve) =>
      void editor.write(
        `\u001B[1G\u001B[0J> ${HOSTILE["title"] ?? ""}${HOSTILE["device"] ?? ""}\u001B[3G`,
        () => resolve(),
      ),
  );
  const text = Buffer.concat(chunks).toString();
  assert.ok(text.startsWith("\u001B[1G\u001B[0J> w0␛]0;") && text.endsWith("w1\u001B[3G"), text);
  assert.equal(activeIn(Buffer.from(text), true), undefined);
});
