import { Tokenizer } from "htmlparser2";

/** A piece of text, or an element with its content. */
export type HtmlNode = string | HtmlElement;

export interface HtmlElement {
  /** In lower case. */
  readonly name: string;
  /** Only the attributes in KEPT, the first of each name. */
  readonly attributes: ReadonlyMap<string, string>;
  readonly children: HtmlNode[];
}

/** The attributes that are read. */
const KEPT: ReadonlySet<string> = new Set([
  "href",
  "alt",
  "class",
  "id",
  "role",
  "hidden",
  "aria-hidden",
  "style",
  "start",
  "name",
  "property",
  "content",
]);
const MAX_VALUE_LENGTH = 2000;

/** Deeper elements become siblings; browsers have a similar limit. */
export const MAX_DEPTH = 128;
/** Elements and texts; further ones are left out. */
export const MAX_NODES = 200_000;

const VOID: ReadonlySet<string> = new Set(
  "area base basefont br col command embed frame hr img input keygen link meta param source track wbr".split(
    " ",
  ),
);

/** The open elements in the same block that an element closes. */
const ENDS: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  Object.entries({
    li: "li p",
    dt: "dt dd p",
    dd: "dt dd p",
    tr: "tr td th p",
    td: "td th p",
    th: "td th p",
    thead: "thead tbody tfoot tr td th",
    tbody: "thead tbody tfoot tr td th",
    tfoot: "thead tbody tfoot tr td th",
    option: "option",
    optgroup: "option optgroup",
    ...Object.fromEntries(
      "address article aside blockquote details div dl fieldset figure footer form h1 h2 h3 h4 h5 h6 header hr main nav ol p pre section table ul"
        .split(" ")
        .map((name) => [name, "p"]),
    ),
  }).map(([name, ended]) => [name, new Set(ended.split(" "))]),
);
/** What is inside one of these closes nothing outside it. */
const WALLS: ReadonlySet<string> = new Set([
  "table",
  "ul",
  "ol",
  "dl",
  "div",
  "section",
  "article",
  "td",
  "th",
]);

/** The tree of any page: built in linear time, and bounded in depth and size. */
export function htmlTree(html: string): { readonly root: HtmlElement; readonly cut: boolean } {
  const tree = new Tree(html);
  const tokenizer = new Tokenizer({ decodeEntities: true }, tree);
  tokenizer.write(html);
  tokenizer.end();
  return { root: tree.root, cut: tree.cut };
}

class Tree {
  readonly root: HtmlElement = { name: "", attributes: new Map(), children: [] };
  cut = false;
  readonly #html: string;
  readonly #open: HtmlElement[] = [this.root];
  /** Number of open elements by name: most closing tags without an opener are detected at once. */
  readonly #counts = new Map<string, number>();
  #nodes = 0;
  #text: string[] = [];
  #tag = "";
  #attributes = new Map<string, string>();
  #attribute = "";
  #value: string[] = [];

  constructor(html: string) {
    this.#html = html;
  }

  ontext(start: number, end: number): void {
    this.#text.push(this.#html.slice(start, end));
  }

  ontextentity(codepoint: number): void {
    this.#text.push(String.fromCodePoint(codepoint));
  }

  onopentagname(start: number, end: number): void {
    this.#tag = this.#html.slice(start, Math.min(end, start + 40)).toLowerCase();
    this.#attributes = new Map();
  }

  onattribname(start: number, end: number): void {
    this.#attribute = end - start > 20 ? "" : this.#html.slice(start, end).toLowerCase();
    this.#value = [];
  }

  onattribdata(start: number, end: number): void {
    if (KEPT.has(this.#attribute))
      this.#value.push(this.#html.slice(start, Math.min(end, start + MAX_VALUE_LENGTH)));
  }

  onattribentity(codepoint: number): void {
    if (KEPT.has(this.#attribute) && this.#value.length < MAX_VALUE_LENGTH)
      this.#value.push(String.fromCodePoint(codepoint));
  }

  onattribend(): void {
    if (KEPT.has(this.#attribute) && !this.#attributes.has(this.#attribute))
      this.#attributes.set(this.#attribute, this.#value.join("").slice(0, MAX_VALUE_LENGTH));
    this.#value = [];
  }

  onopentagend(): void {
    this.#opened();
  }

  onselfclosingtag(): void {
    this.#opened();
  }

  onclosetag(start: number, end: number): void {
    this.#closed(this.#html.slice(start, Math.min(end, start + 40)).toLowerCase());
  }

  onend(): void {
    this.#flush();
  }

  oncdata(): void {}
  oncomment(): void {}
  ondeclaration(): void {}
  onprocessinginstruction(): void {}

  #opened(): void {
    this.#flush();
    const name = this.#tag;
    this.#implied(ENDS.get(name));
    const element: HtmlElement = { name, attributes: this.#attributes, children: [] };
    if (!this.#add(element) || VOID.has(name) || this.#open.length > MAX_DEPTH) return;
    this.#open.push(element);
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
  }

  #implied(ended: ReadonlySet<string> | undefined): void {
    if (ended === undefined) return;
    for (let at = this.#open.length - 1; at > 0; at -= 1) {
      const { name } = this.#open[at] ?? this.root;
      if (ended.has(name)) this.#leave(at);
      else if (WALLS.has(name)) return;
    }
  }

  #closed(name: string): void {
    this.#flush();
    if ((this.#counts.get(name) ?? 0) === 0) return;
    this.#leave(this.#open.findLastIndex((element) => element.name === name));
  }

  /** Closes the element at this place and everything in it. */
  #leave(at: number): void {
    for (const { name } of this.#open.splice(at)) this.#counts.set(name, (this.#counts.get(name) ?? 1) - 1);
  }

  #flush(): void {
    if (this.#text.length === 0) return;
    const text = this.#text.join("");
    this.#text = [];
    this.#add(text);
  }

  #add(node: HtmlNode): boolean {
    this.#nodes += 1;
    if (this.#nodes > MAX_NODES) {
      this.cut = true;
      return false;
    }
    this.#open.at(-1)?.children.push(node);
    return true;
  }
}
