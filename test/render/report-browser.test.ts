import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";
import test from "node:test";
import { reportPage } from "../../src/render/html-page.ts";
import { noBrowser, startBrowser } from "../fixtures/browser.ts";
import { callOf, finished, reportFrom, said, started, USUAL } from "../fixtures/report.ts";
import { scratch } from "../fixtures/scratch.ts";

/** Very long words, for narrow places. */
const LONG = "x".repeat(3000);
const CROWDED = [
  started(LONG),
  said(LONG),
  ...callOf({ call: "c1", tool: LONG.slice(0, 200), args: { path: LONG }, ended: { text: LONG } }),
  finished({
    answer: LONG,
    changes: { added: [LONG], modified: [], deleted: [], ignored: 0 },
    denials: [{ call: "c1", tool: "bash", target: LONG, decision: "deny", rule: LONG, reason: LONG }],
  }),
];

const OPEN = "for (const each of document.querySelectorAll('details')) each.open = true";
/** Texts that do not fit their box, and cannot be scrolled to. */
const CLIPPED = `[...document.querySelectorAll("body *")].filter((each) => {
  const { right, left } = each.getBoundingClientRect();
  const scrolls = getComputedStyle(each).overflowX !== "visible";
  return right > innerWidth + 1 || left < -1 || (!scrolls && each.scrollWidth > each.clientWidth + 1 && each.clientWidth > 0);
}).map((each) => each.tagName + "." + each.className + " " + each.textContent.slice(0, 40))`;
const GROUND = "getComputedStyle(document.body).backgroundColor";
/** The least contrast of any text with what is behind it, as WCAG counts. */
const CONTRAST = `Math.min(...[...document.querySelectorAll("body *")].filter((each) =>
  [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim() !== "")).map((each) => {
  const light = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  }).reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
  let ground = each;
  while (ground && getComputedStyle(ground).backgroundColor === "rgba(0, 0, 0, 0)") ground = ground.parentElement;
  const two = [light(getComputedStyle(each).color), light(getComputedStyle(ground).backgroundColor)];
  return (Math.max(...two) + 0.05) / (Math.min(...two) + 0.05);
}))`;

/** Width and height of a PNG. */
const sizeOf = (png: Buffer): readonly [number, number] => [png.readUInt32BE(16), png.readUInt32BE(20)];

test(
  "a browser shows a report on a phone and on a desktop, light and dark, with no text cut off and nothing loaded",
  { skip: noBrowser, timeout: 120_000 },
  async () => {
    await using place = await scratch({
      "usual.html": reportPage(reportFrom(USUAL)),
      "crowded.html": reportPage(reportFrom(CROWDED)),
    });
    await using browser = await startBrowser();
    for (const name of ["usual.html", "crowded.html"]) {
      const url = pathToFileURL(place.at(name)).href;
      const page = await browser.open(url);
      const grounds = new Set<unknown>();
      for (const folded of [true, false]) {
        if (!folded) await page.evaluate(OPEN);
        for (const width of [390, 1280])
          for (const dark of [false, true]) {
            await page.view({ width, dark });
            const where = `${name} ${width} ${dark ? "dark" : "light"} ${folded ? "folded" : "open"}`;
            assert.deepEqual(await page.evaluate(CLIPPED), [], where);
            assert.ok(Number(await page.evaluate(CONTRAST)) >= 4.5, where);
            const [across, down] = sizeOf(await page.picture());
            assert.ok(across === width && down > 800, `${where}: ${across} x ${down}`);
            grounds.add(await page.evaluate(GROUND));
          }
      }
      assert.equal(grounds.size, 2, "light and dark differ");
      assert.deepEqual([page.said(), page.loaded()], [[], [url]]);
    }
  },
);

test(
  "a browser runs nothing that a page's texts attempt",
  { skip: noBrowser, timeout: 120_000 },
  async () => {
    const bad = `<script>document.title="owned"</script><img src="https://evil.example/x" onerror="document.title='owned'"></style></pre>`;
    await using place = await scratch({
      "bad.html": reportPage(
        reportFrom([started(bad), said(bad), ...callOf({ call: "c", tool: bad, args: { [bad]: bad } })], {
          diff: bad,
        }),
      ),
    });
    await using browser = await startBrowser();
    const url = pathToFileURL(place.at("bad.html")).href;
    const page = await browser.open(url);
    assert.equal(await page.evaluate("document.querySelectorAll('script, img').length"), 0);
    assert.match(String(await page.evaluate("document.title")), / – harness$/);
    assert.ok(String(await page.evaluate("document.body.textContent")).includes(bad));
    assert.deepEqual(page.loaded(), [url]);
  },
);
