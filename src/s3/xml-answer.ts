import { Parser } from "htmlparser2";
import type { ServerError } from "./bucket-trouble.ts";

/** Reads an S3 answer, a flat tree of XML: reports each element at its end with its path and text. */
function eachElement(xml: string, onElement: (path: string, text: string) => void): void {
  const open: { readonly name: string; text: string }[] = [];
  const parser = new Parser(
    {
      onopentagname: (name) => void (open.length < DEEPEST && open.push({ name, text: "" })),
      ontext: (text) => {
        const last = open.at(-1);
        if (last !== undefined) last.text += text;
      },
      onclosetag: (name) => {
        const last = open.at(-1);
        if (last?.name !== name) return;
        onElement(open.map((each) => each.name).join("/"), last.text);
        open.pop();
      },
    },
    { xmlMode: true, decodeEntities: true },
  );
  parser.write(xml);
  parser.end();
}

/** Nothing that we read lies deeper. */
const DEEPEST = 8;

export interface StoredObject {
  readonly key: string;
  readonly bytes: number;
  /** Milliseconds since 1970, by the server's clock. */
  readonly changed: number;
}

export interface ListPage {
  readonly objects: readonly StoredObject[];
  /** Where the next page begins; undefined: there is none. */
  readonly next: string | undefined;
}

/** Undefined if the answer is not a list. */
export function listPageIn(xml: string): ListPage | undefined {
  const found: Record<string, string>[] = [];
  const whole: Record<string, string> = {};
  let entry: Record<string, string> = {};
  eachElement(xml, (path, text) => {
    const [root, name = "", part] = path.split("/");
    if (root !== "ListBucketResult") return;
    if (name !== "Contents") whole[name] = text;
    else if (part !== undefined) entry[part] = text;
    else {
      found.push(entry);
      entry = {};
    }
  });
  if (!("" in whole)) return undefined;
  const isEncoded = whole["EncodingType"] === "url";
  const objects: StoredObject[] = [];
  for (const { Key: told, Size: size = "", LastModified: changed = "" } of found) {
    const key = told === undefined || !isEncoded ? told : decoded(told);
    if (key === undefined) return undefined;
    objects.push({ key, bytes: Number(size), changed: Date.parse(changed) });
  }
  const next = whole["IsTruncated"] === "true" ? whole["NextContinuationToken"] : undefined;
  return { objects, next };
}

/** Decodes as for a query: a plus is a blank. */
function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return undefined;
  }
}

/** Empty texts if the answer is no error. */
export function errorIn(xml: string): ServerError {
  const told: Record<string, string> = {};
  eachElement(xml, (path, text) => {
    told[path] ??= text;
  });
  const { "Error/Code": code = "", "Error/Message": message = "", "Error/Region": region = "" } = told;
  return { code, message, region };
}
