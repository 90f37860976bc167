import type { HereDoc, Redirection } from "unbash";
import type { Piece, Redirect, Word } from "../syntax.ts";
import type { Converter } from "./read.ts";
import { merged, plainPieces } from "./words.ts";

/** None where its target is missing: that is an error the parser tells. */
export function redirectOf(source: Redirection, converter: Converter): readonly Redirect[] {
  const span = converter.span(source);
  const descriptor = source.descriptor === undefined ? null : descriptorOf(source.descriptor);
  if (source.type === "HereDoc")
    return [{ span, operator: "<<", descriptor, target: bodyOf(source, converter) }];
  if (source.target === undefined) return [];
  return [{ span, operator: source.operator, descriptor, target: converter.word(source.target) }];
}

const descriptorOf = (descriptor: NonNullable<Redirection["descriptor"]>): number | string =>
  descriptor.type === "FileDescriptor" ? descriptor.value : descriptor.name;

function bodyOf(source: HereDoc, converter: Converter): Word {
  const { body, delimiter, closing, operator } = source;
  if (closing === undefined) converter.fail("a here-document without its end", source);
  const stripped = operator === "<<-";
  const tabless = (text: string): string => (stripped ? text.replaceAll(/^\t+/gm, "") : text);
  const span = converter.span(body);
  if (delimiter?.quoted === true) return { span, pieces: asText(tabless(body.text)) };
  if (converter.tooMany(body)) return { span, pieces: [] };
  if (body.parts === undefined) return { span, pieces: asText(unescaped(tabless(body.text))) };
  const pieces = body.parts.flatMap((part) =>
    part.type === "Literal"
      ? asText(unescaped(tabless(part.text)))
      : plainPieces(part, { from: 0, quoted: true, read: converter.inner }),
  );
  return { span, pieces: merged(pieces) };
}

const asText = (text: string): readonly Piece[] => (text === "" ? [] : [{ kind: "text", text }]);

/** What a backslash means in a here-document whose delimiter is not quoted. */
const unescaped = (text: string): string =>
  text.replaceAll(/\\([\\$`\n])/g, (_, letter: string) => (letter === "\n" ? "" : letter));
