import { URL } from "node:url";
import type { HtmlElement, HtmlNode } from "./html-tree.ts";
import { MarkdownWriter } from "./markdown-writer.ts";

export interface Readable {
  readonly title: string;
  readonly text: string;
  /** Something was left out because there is too much of it. */
  readonly cut: boolean;
}

/** Nothing in these is for a reader. */
const UNREAD: ReadonlySet<string> = new Set(
  "title script style noscript template svg math iframe object embed canvas video audio select button input textarea datalist head dialog map noframes noembed frameset".split(
    " ",
  ),
);
/** What stands around the text of a page, by its element or its role. */
const AROUND: ReadonlySet<string> = new Set(["nav", "footer", "aside"]);
const AROUND_ROLES =
  /^(?:navigation|banner|contentinfo|complementary|search|dialog|alertdialog|menu|menubar)$/i;
const AROUND_NAMES =
  /(?:^|[\s_-])(?:cookies?|consent|advert\w*|ads?|promo\w*|share|sharing|social|newsletter|subscribe|breadcrumbs?|sidebar|skip-?link|popup|modal|toc|navbar|pagination|related)(?=$|[\s_-])/i;
const UNSEEN_STYLE = /(?:display\s*:\s*none|visibility\s*:\s*hidden)/i;

/** A part is the page's text only where it has this much of all of it. */
const LEAST_SHARE = 0.25;
const LEAST_TEXT = 200;

/**
 * What a reader sees of a page: its main part as Markdown, where one can be told, with links in whole. What is hidden is
 * left out, as nobody who looks at the page would see it.
 */
export function readable(root: HtmlElement, address: string): Readable {
  const about = aboutPage(root, address);
  const sizes = new Sizes(root);
  const body = sizes.body ?? root;
  const main = mainPart(body, sizes);
  const written = write(main, about.base, (element) => isAround(element, sizes, sizes.of(main)));
  if (written.text.length >= LEAST_TEXT || sizes.of(body) <= written.text.length)
    return { title: about.title, ...written };
  // What was left out was most of it.
  return { title: about.title, ...write(body, about.base, () => false) };
}

function write(
  part: HtmlElement,
  base: string,
  leftOut: (element: HtmlElement) => boolean,
): Pick<Readable, "text" | "cut"> {
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

/** The names that people give to what is around a text are also given to texts: a large part stays. */
function isAround(element: HtmlElement, sizes: Sizes, whole: number): boolean {
  const { name, attributes } = element;
  if (AROUND.has(name) || AROUND_ROLES.test(attributes.get("role") ?? "")) return true;
  if (name === "header") return !sizes.hasHeading(element) && sizes.of(element) < whole * LEAST_SHARE;
  if (attributes.size === 0) return false;
  const names = `${attributes.get("class") ?? ""} ${attributes.get("id") ?? ""}`;
  return AROUND_NAMES.test(names) && sizes.of(element) < whole * LEAST_SHARE;
}

function mainPart(body: HtmlElement, sizes: Sizes): HtmlElement {
  const whole = sizes.of(body);
  const large = sizes.candidates.filter(
    (element) => sizes.of(element) >= Math.max(whole * LEAST_SHARE, Math.min(whole, LEAST_TEXT)),
  );
  const rank = (element: HtmlElement): number => sizes.of(element) + (isMain(element) ? whole : 0);
  return large.toSorted((one, other) => rank(other) - rank(one))[0] ?? body;
}

const isMain = ({ name, attributes }: HtmlElement): boolean =>
  name === "main" || attributes.get("role") === "main";

/** How much text is in each element that is read, and which could be the main part. */
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

  /** As deep as a tree may be. */
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

/** What the head says: the title, and what addresses are read against. */
function aboutPage(root: HtmlElement, address: string): { readonly title: string; readonly base: string } {
  const found: { title?: string; shown?: string; heading?: string; base?: string } = {};
  const look = (element: HtmlElement): void => {
    const { name, attributes } = element;
    if (name === "title") found.title ??= plain(element);
    if (name === "h1") found.heading ??= plain(element);
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

const LONGEST_TITLE = 1000;

/** Its text on one line. */
function plain(element: HtmlElement): string {
  const pieces: string[] = [];
  const gather = (node: HtmlNode): void => {
    if (typeof node === "string") pieces.push(node.slice(0, LONGEST_TITLE));
    else if (pieces.length < 50 && !isUnread(node)) for (const child of node.children) gather(child);
  };
  for (const child of element.children) gather(child);
  return pieces.join("").replace(/\s+/g, " ").trim();
}
