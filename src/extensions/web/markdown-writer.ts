import { URL } from "node:url";
import type { HtmlElement, HtmlNode } from "./html-tree.ts";

/** After this many characters, writing stops: links and indentation can make a text longer than its page. */
const MOST_TEXT = 500_000;
const LONGEST_LINK = 500;
/** Deeper lists and quotes are indented only this far. */
const DEEPEST_INDENT = 6;
const MOST_CELLS = 40;

const BLOCKS: ReadonlySet<string> = new Set(
  "address article aside blockquote body center dd details div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main nav ol p pre section summary table tbody td tfoot th thead tr ul".split(
    " ",
  ),
);
const HEADING = /^h([1-6])$/;

export class MarkdownWriter {
  readonly #base: string;
  readonly #leftOut: (element: HtmlElement) => boolean;
  readonly #lines: string[] = [];
  #inlineTotal = 0;
  #written = 0;
  #cut = false;
  /** The prefix of each line in the open blocks. */
  #indent: readonly string[] = [];
  /** The prefix of the next line only, in place of the last of `#indent`. */
  #marker: string | undefined;
  #inline: string[] = [];
  #lists = 0;

  constructor(base: string, leftOut: (element: HtmlElement) => boolean) {
    this.#base = base;
    this.#leftOut = leftOut;
  }

  end(): { readonly text: string; readonly cut: boolean } {
    this.#paragraph();
    const text = this.#lines
      .join("\n")
      .replace(/^[ \t>]+$/gm, "")
      .replace(/\n{3,}/g, "\n\n")
      .trim()
      .slice(0, MOST_TEXT);
    return { text, cut: this.#cut };
  }

  block(element: HtmlElement): void {
    if (this.#cut) return;
    const { name } = element;
    const isList = name === "ul" || name === "ol";
    this.#paragraph(isList && this.#lists > 0);
    const level = HEADING.exec(name)?.[1];
    if (level !== undefined) this.#prefixed(element, `${"#".repeat(Number(level))} `);
    else if (name === "pre") this.#code(element);
    else if (name === "hr") this.#writeLines(["---", ""]);
    else if (name === "blockquote") this.#within("> ", undefined, element);
    else if (isList) this.#list(element);
    else if (name === "dd") this.#within("  ", ": ", element);
    else if (name === "table") this.#table(element);
    else this.#inside(element);
    this.#paragraph();
  }

  #inside({ children }: HtmlElement): void {
    for (const child of children) this.#node(child);
  }

  #node(node: HtmlNode): void {
    if (this.#cut) return;
    if (typeof node === "string") return this.#addInline(node);
    if (this.#leftOut(node)) return;
    if (BLOCKS.has(node.name)) this.block(node);
    else this.#inlineElement(node);
  }

  /** Adds to the open paragraph. */
  #addInline(text: string): void {
    this.#inline.push(text.slice(0, MOST_TEXT - this.#inlineTotal));
    this.#inlineTotal += text.length;
    if (this.#inlineTotal > MOST_TEXT) this.#cut = true;
  }

  #inlineElement(element: HtmlElement): void {
    const { name, attributes } = element;
    if (name === "br") return this.#addInline(BREAK);
    if (name === "img") {
      const alt = (attributes.get("alt") ?? "").trim();
      if (alt !== "") this.#addInline(`[image: ${alt}]`);
      return;
    }
    if (name === "code" || name === "kbd" || name === "samp" || name === "tt") {
      const text = textOf(element, this.#leftOut).replace(/\s+/g, " ").trim();
      if (text !== "") this.#addInline(ticked(text));
      return;
    }
    if (name === "a") return this.#link(element);
    this.#inside(element);
  }

  #link(element: HtmlElement): void {
    const address = this.#addressOf(element.attributes.get("href") ?? "");
    const hasBlock = element.children.some((child) => typeof child !== "string" && BLOCKS.has(child.name));
    if (address === undefined || hasBlock) {
      this.#inside(element);
      if (address !== undefined) this.#addInline(` <${address}>`);
      return;
    }
    const before = this.#inline;
    this.#inline = [];
    this.#inside(element);
    const text = collapsed(this.#inline).replaceAll("\n", " ");
    this.#inline = before;
    if (text !== "") this.#addInline(`[${text}](${address})`);
  }

  /** The absolute address, if a reader could go there; undefined for a place in the same page. */
  #addressOf(href: string): string | undefined {
    if (href === "" || href.startsWith("#")) return undefined;
    const url = URL.parse(href, this.#base);
    if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) return undefined;
    if (url.username !== "" || url.password !== "" || url.href.length > LONGEST_LINK) return undefined;
    return url.href.replaceAll("(", "%28").replaceAll(")", "%29");
  }

  #prefixed(element: HtmlElement, prefix: string): void {
    this.#inside(element);
    const text = collapsed(this.#inline).replaceAll("\n", " ");
    this.#inline = [];
    if (text !== "") this.#writeLines([prefix + text, ""]);
  }

  /** A nested list has no blank line around it. */
  #list({ name, attributes, children }: HtmlElement): void {
    this.#lists += 1;
    let number = Number.parseInt(attributes.get("start") ?? "1", 10) || 1;
    for (const child of children) {
      if (typeof child === "string" || child.name !== "li") {
        this.#node(child);
        continue;
      }
      if (this.#leftOut(child)) continue;
      const marker = name === "ol" ? `${number}. ` : "- ";
      number += 1;
      this.#within(" ".repeat(marker.length), marker, child);
    }
    this.#lists -= 1;
    if (this.#lists === 0) this.#writeLines([""]);
  }

  #within(indent: string, marker: string | undefined, element: HtmlElement): void {
    this.#paragraph();
    const before = this.#indent;
    const isDeep = before.length >= DEEPEST_INDENT;
    if (!isDeep) this.#indent = [...before, indent];
    this.#marker = isDeep ? undefined : marker;
    this.#inside(element);
    this.#paragraph(element.name === "li");
    this.#marker = undefined;
    this.#indent = before;
  }

  #code(element: HtmlElement): void {
    const text = textOf(element, this.#leftOut).replace(/^\n/, "").trimEnd();
    if (text === "") return;
    const ticks = (text.match(/`{3,}/g) ?? []).reduce((most, run) => Math.max(most, run.length + 1), 3);
    const fence = "`".repeat(Math.min(ticks, 20));
    this.#writeLines([fence, ...text.split("\n"), fence, ""]);
  }

  /** One line per row; a table that only arranges the page is read as ordinary content. */
  #table(element: HtmlElement): void {
    const rows = rowsOf(element, this.#leftOut);
    const most = Math.max(0, ...rows.map((row) => row.length));
    if (most < 2 || most > MOST_CELLS || rows.some((row) => row.some(isLayout))) return this.#inside(element);
    const lines: string[] = [];
    for (const row of rows) {
      lines.push(`| ${row.map((cell) => this.#cell(cell)).join(" | ")} |`);
      if (lines.length === 1) lines.push(`|${" --- |".repeat(row.length)}`);
    }
    this.#writeLines([...lines, ""]);
  }

  #cell(cell: HtmlElement): string {
    const before = this.#inline;
    this.#inline = [];
    this.#flat(cell);
    const text = collapsed(this.#inline).replaceAll("\n", " ").replaceAll("|", "\\|");
    this.#inline = before;
    return text;
  }

  /** The content on one line, whatever its elements. */
  #flat(element: HtmlElement): void {
    for (const child of element.children) {
      if (typeof child === "string") this.#addInline(child);
      else if (this.#leftOut(child)) continue;
      else if (BLOCKS.has(child.name)) {
        this.#addInline(" ");
        this.#flat(child);
        this.#addInline(" ");
      } else if (child.name === "br") this.#addInline(" ");
      else this.#inlineElement(child);
    }
  }

  /** Ends the open paragraph. `tight`: without a blank line before what follows. */
  #paragraph(tight = false): void {
    if (this.#inline.length === 0) return;
    const text = collapsed(this.#inline);
    this.#inline = [];
    if (text !== "") this.#writeLines([...text.split("\n"), ...(tight ? [] : [""])]);
  }

  #writeLines(lines: readonly string[]): void {
    const indent = this.#indent.join("");
    for (const line of lines) {
      if (this.#written > MOST_TEXT) {
        this.#cut = true;
        return;
      }
      const marker = line === "" ? undefined : this.#marker;
      const front = marker === undefined ? indent : this.#indent.slice(0, -1).join("") + marker;
      if (marker !== undefined) this.#marker = undefined;
      const whole = line === "" ? indent.trimEnd() : front + line;
      this.#written += whole.length + 1;
      this.#lines.push(whole);
    }
  }
}

/** Stays a line break when white space is collapsed. */
const BREAK = "\u0000";

/** Collapses inline text as browsers do: white space becomes one blank, and `br` ends a line. */
const collapsed = (pieces: readonly string[]): string =>
  pieces
    .join("")
    .replace(/[\t\n\f\r ]+/g, " ")
    .replace(/ ?\0 ?/g, "\n")
    .replace(/\n{3,}/g, "\n\n")
    .trim();

const ticked = (text: string): string => (text.includes("`") ? `\`\` ${text} \`\`` : `\`${text}\``);

function textOf(element: HtmlElement, leftOut: (element: HtmlElement) => boolean): string {
  const pieces: string[] = [];
  const gather = (node: HtmlNode): void => {
    if (typeof node === "string") pieces.push(node);
    else if (node.name === "br") pieces.push("\n");
    else if (!leftOut(node)) for (const child of node.children) gather(child);
  };
  for (const child of element.children) gather(child);
  return pieces.join("");
}

/** The cells of the table's own rows. */
function rowsOf(
  table: HtmlElement,
  leftOut: (element: HtmlElement) => boolean,
): readonly (readonly HtmlElement[])[] {
  const rows: HtmlElement[][] = [];
  const gather = (element: HtmlElement): void => {
    for (const child of element.children) {
      if (typeof child === "string" || leftOut(child)) continue;
      if (child.name === "tr") rows.push(cellsOf(child, leftOut));
      else if (/^t(?:head|body|foot)$/.test(child.name)) gather(child);
    }
  };
  gather(table);
  return rows.filter((row) => row.length > 0);
}

const cellsOf = (row: HtmlElement, leftOut: (element: HtmlElement) => boolean): HtmlElement[] =>
  row.children.filter(
    (child): child is HtmlElement =>
      typeof child !== "string" && (child.name === "td" || child.name === "th") && !leftOut(child),
  );

const LAYOUT_ELEMENTS = /^(?:table|ul|ol|pre|h[1-6]|blockquote|section|article)$/;

const isLayout = (cell: HtmlElement): boolean =>
  cell.children.some(
    (child) =>
      typeof child !== "string" &&
      (LAYOUT_ELEMENTS.test(child.name) || (child.name === "div" && isLayout(child))),
  );
