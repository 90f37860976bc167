import { URL } from "node:url";
import type { HtmlElement, HtmlNode } from "./html-tree.ts";
import { MarkdownWriter } from "./markdown-writer.ts";

export interface Readable {
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
const LEAST_SHARE = 0.25;
const LEAST_TEXT = 200;

/**
 * What a reader sees of a page: its main part as Markdown, if one can be identified, with absolute links. Hidden
 * content is left out, because a person looking at the page would not see it.
 */
export function readable(root: HtmlElement, address: string): Readable {
  const about = aboutPage(root, address);
  const sizes = new Sizes(root);
  const body = sizes.body ?? root;
  const main = mainPart(body, sizes);
  const written = write(main, about.base, (element) => isSurrounding(element, sizes, sizes.of(main)));
  if (written.text.length >= LEAST_TEXT || sizes.of(body) <= written.text.length)
    return { title: about.title, ...written };
  // Leaving parts out removed most of the text.
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

/** Texts may have the same class names as the parts around them, so a large part is kept. */
function isSurrounding(element: HtmlElement, sizes: Sizes, whole: number): boolean {
  const { name, attributes } = element;
  if (SURROUNDING_ELEMENTS.has(name) || SURROUNDING_ROLES.test(attributes.get("role") ?? "")) return true;
  if (name === "header") return !sizes.hasHeading(element) && sizes.of(element) < whole * LEAST_SHARE;
  if (attributes.size === 0) return false;
  const names = `${attributes.get("class") ?? ""} ${attributes.get("id") ?? ""}`;
  return SURROUNDING_NAMES.test(names) && sizes.of(element) < whole * LEAST_SHARE;
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

const LONGEST_TITLE = 1000;

/** The element's text on one line. */
function textOnOneLine(element: HtmlElement): string {
  const pieces: string[] = [];
  const gather = (node: HtmlNode): void => {
    if (typeof node === "string") pieces.push(node.slice(0, LONGEST_TITLE));
    else if (pieces.length < 50 && !isUnread(node)) for (const child of node.children) gather(child);
  };
  for (const child of element.children) gather(child);
  return pieces.join("").replace(/\s+/g, " ").trim();
}
