/** What a reader sees of a page, as Markdown. */
import { URL } from "node:url";
import type { HtmlElement, HtmlNode } from "./html-tree.ts";

export interface ReadablePage {
  readonly title: string;
  readonly text: string;
  /** Something was left out because the page is too long. */
  readonly cut: boolean;
}

/** Elements without content for a reader. */
const UNREAD: ReadonlySet<string> = new Set(
  "title script style noscript template svg math iframe object embed canvas video audio select button input textarea datalist head dialog map noframes noembed frameset".split(
    " ",
  ),
);
/** Elements and roles around the main text of a page. */
const SURROUNDING_ELEMENTS: ReadonlySet<string> = new Set(["nav", "footer", "aside"]);
const SURROUNDING_ROLES =
  /^(?:navigation|banner|contentinfo|complementary|search|dialog|alertdialog|menu|menubar)$/i;
const SURROUNDING_NAMES =
  /(?:^|[\s_-])(?:cookies?|consent|advert\w*|ads?|promo\w*|share|sharing|social|newsletter|subscribe|breadcrumbs?|sidebar|skip-?link|popup|modal|toc|navbar|pagination|related)(?=$|[\s_-])/i;
const UNSEEN_STYLE = /(?:display\s*:\s*none|visibility\s*:\s*hidden)/i;

/** A part counts as the main text only if it has this share of all text. */
const MIN_SHARE = 0.25;
const MIN_TEXT = 200;

/**
 * What a reader sees of a page: its main part as Markdown, if one can be identified, with absolute links. Hidden
 * content is left out, because a person looking at the page would not see it.
 */
export function readable(root: HtmlElement, address: string): ReadablePage {
  const about = aboutPage(root, address);
  const sizes = new Sizes(root);
  const body = sizes.body ?? root;
  const main = mainPart(body, sizes);
  const written = write(main, about.base, (element) => isSurrounding(element, sizes, sizes.of(main)));
  if (written.text.length >= MIN_TEXT || sizes.of(body) <= written.text.length)
    return { title: about.title, ...written };
  // Leaving parts out removed most of the text.
  return { title: about.title, ...write(body, about.base, () => false) };
}

function write(
  part: HtmlElement,
  base: string,
  leftOut: (element: HtmlElement) => boolean,
): Pick<ReadablePage, "text" | "cut"> {
  const writer = new MarkdownWriter(base, (element) => isUnread(element) || leftOut(element));
  writer.block(part);
  return writer.end();
}

function isUnread({ name, attributes }: HtmlElement): boolean {
  if (UNREAD.has(name)) return true;
  if (attributes.size === 0) return false;
  return (
    attributes.has("hidden") ||
    attributes.get("aria-hidden") === "true" ||
    UNSEEN_STYLE.test(attributes.get("style") ?? "")
  );
}

/** Texts may have the same class names as the parts around them, so a large part is kept. */
function isSurrounding(element: HtmlElement, sizes: Sizes, whole: number): boolean {
  const { name, attributes } = element;
  if (SURROUNDING_ELEMENTS.has(name) || SURROUNDING_ROLES.test(attributes.get("role") ?? "")) return true;
  if (name === "header") return !sizes.hasHeading(element) && sizes.of(element) < whole * MIN_SHARE;
  if (attributes.size === 0) return false;
  const names = `${attributes.get("class") ?? ""} ${attributes.get("id") ?? ""}`;
  return SURROUNDING_NAMES.test(names) && sizes.of(element) < whole * MIN_SHARE;
}

function mainPart(body: HtmlElement, sizes: Sizes): HtmlElement {
  const whole = sizes.of(body);
  const large = sizes.candidates.filter(
    (element) => sizes.of(element) >= Math.max(whole * MIN_SHARE, Math.min(whole, MIN_TEXT)),
  );
  const rank = (element: HtmlElement): number => sizes.of(element) + (isMain(element) ? whole : 0);
  return large.toSorted((one, other) => rank(other) - rank(one))[0] ?? body;
}

const isMain = ({ name, attributes }: HtmlElement): boolean =>
  name === "main" || attributes.get("role") === "main";

/** The amount of text in each element, and the candidates for the main part. */
class Sizes {
  body: HtmlElement | undefined;
  readonly candidates: HtmlElement[] = [];
  readonly #sizes = new Map<HtmlElement, number>();
  readonly #headings = new Set<HtmlElement>();

  constructor(root: HtmlElement) {
    this.#measure(root);
  }

  readonly of = (element: HtmlElement): number => this.#sizes.get(element) ?? 0;
  readonly hasHeading = (element: HtmlElement): boolean => this.#headings.has(element);

  /** Recursion is limited by the depth of the tree. */
  #measure(element: HtmlElement): number {
    if (element.name !== "" && isUnread(element)) return 0;
    if (element.name === "body") this.body ??= element;
    if (isMain(element) || element.name === "article") this.candidates.push(element);
    let size = 0;
    for (const child of element.children) {
      if (typeof child === "string") {
        size += child.trim().length;
        continue;
      }
      size += this.#measure(child);
      if (child.name === "h1" || this.#headings.has(child)) this.#headings.add(element);
    }
    this.#sizes.set(element, size);
    return size;
  }
}

/** From the head: the title, and the base of relative addresses. */
function aboutPage(root: HtmlElement, address: string): { readonly title: string; readonly base: string } {
  const found: { title?: string; shown?: string; heading?: string; base?: string } = {};
  const look = (element: HtmlElement): void => {
    const { name, attributes } = element;
    if (name === "title") found.title ??= textOnOneLine(element);
    if (name === "h1") found.heading ??= textOnOneLine(element);
    if (name === "meta" && isTitle(attributes)) found.shown ??= attributes.get("content") ?? "";
    if (name === "base") found.base ??= attributes.get("href") ?? "";
    if (name === "svg") return;
    for (const child of element.children) if (typeof child !== "string") look(child);
  };
  look(root);
  const base = URL.parse(found.base ?? "", address);
  const title = [found.title, found.shown, found.heading].find((each) => each !== undefined && each !== "");
  return {
    title: (title ?? "").slice(0, 300),
    base: base?.protocol === "https:" || base?.protocol === "http:" ? base.href : address,
  };
}

const isTitle = (attributes: HtmlElement["attributes"]): boolean =>
  (attributes.get("property") ?? attributes.get("name")) === "og:title";

const MAX_TITLE_LENGTH = 1000;

/** The element's text on one line. */
function textOnOneLine(element: HtmlElement): string {
  const pieces: string[] = [];
  const gather = (node: HtmlNode): void => {
    if (typeof node === "string") pieces.push(node.slice(0, MAX_TITLE_LENGTH));
    else if (pieces.length < 50 && !isUnread(node)) for (const child of node.children) gather(child);
  };
  for (const child of element.children) gather(child);
  return pieces.join("").replace(/\s+/g, " ").trim();
}

/** After this many characters, writing stops: links and indentation can make a text longer than its page. */
const MAX_TEXT = 500_000;
const MAX_LINK_LENGTH = 500;
/** Deeper lists and quotes are indented only this far. */
const MAX_INDENT = 6;
const MAX_CELLS = 40;

const BLOCKS: ReadonlySet<string> = new Set(
  "address article aside blockquote body center dd details div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main nav ol p pre section summary table tbody td tfoot th thead tr ul".split(
    " ",
  ),
);
const HEADING = /^h([1-6])$/;

class MarkdownWriter {
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
      .slice(0, MAX_TEXT);
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
    this.#inline.push(text.slice(0, MAX_TEXT - this.#inlineTotal));
    this.#inlineTotal += text.length;
    if (this.#inlineTotal > MAX_TEXT) this.#cut = true;
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
    const text = collapseSpace(this.#inline).replaceAll("\n", " ");
    this.#inline = before;
    if (text !== "") this.#addInline(`[${text}](${address})`);
  }

  /** The absolute address, if a reader could go there; undefined for a place in the same page. */
  #addressOf(href: string): string | undefined {
    if (href === "" || href.startsWith("#")) return undefined;
    const url = URL.parse(href, this.#base);
    if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) return undefined;
    if (url.username !== "" || url.password !== "" || url.href.length > MAX_LINK_LENGTH) return undefined;
    return url.href.replaceAll("(", "%28").replaceAll(")", "%29");
  }

  #prefixed(element: HtmlElement, prefix: string): void {
    this.#inside(element);
    const text = collapseSpace(this.#inline).replaceAll("\n", " ");
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
    const isDeep = before.length >= MAX_INDENT;
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
    if (most < 2 || most > MAX_CELLS || rows.some((row) => row.some(isLayout))) return this.#inside(element);
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
    const text = collapseSpace(this.#inline).replaceAll("\n", " ").replaceAll("|", "\\|");
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
    const text = collapseSpace(this.#inline);
    this.#inline = [];
    if (text !== "") this.#writeLines([...text.split("\n"), ...(tight ? [] : [""])]);
  }

  #writeLines(lines: readonly string[]): void {
    const indent = this.#indent.join("");
    for (const line of lines) {
      if (this.#written > MAX_TEXT) {
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
const collapseSpace = (pieces: readonly string[]): string =>
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
