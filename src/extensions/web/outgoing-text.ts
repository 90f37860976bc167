import { URL } from "node:url";
import { maskSecrets } from "../../core/text/secrets.ts";
import { secretMasks } from "../../core/text/secret-values.ts";

/** Limits on requests that a model composed: an address or query carries text to the server. */

const LONGEST_ADDRESS = 1000;
const LONGEST_QUERY = 300;

/** A user's value that no tool may send anywhere. */
export interface KnownValue {
  readonly name: string;
  readonly value: string;
}

/** Why the text may not be sent, or undefined. */
export type JudgeText = (text: string) => string | undefined;

/** Refuses text that looks like a secret, or contains a known secret value in any usual encoding. */
export function secretJudge(known: readonly KnownValue[]): JudgeText {
  const { mask } = secretMasks(known);
  const digits = known.map(({ value }) => Buffer.from(value).toString("hex"));
  return (text) => {
    const readings = [text, decodedOnce(text), decodedOnce(decodedOnce(text))];
    if (readings.some((each) => maskSecrets(each) !== each)) return "it contains what looks like a secret";
    const isKnown = readings.some((each) => {
      const bytes = Buffer.from(each);
      return !bytes.equals(mask(bytes)) || digits.some((hex) => each.toLowerCase().includes(hex));
    });
    return isKnown ? "it contains the value of a secret" : undefined;
  };
}

/** Decodes like a server; what cannot be decoded stays as it is. */
const decodedOnce = (text: string): string =>
  text
    .replaceAll("+", " ")
    .replaceAll(/(?:%[0-9a-f]{2})+/gi, (run) => Buffer.from(run.replaceAll("%", ""), "hex").toString("utf8"));

/** Returns the address without its fragment, which no server receives. */
export function judgeAddress(text: string, holdsSecret: JudgeText): URL | { readonly refused: string } {
  const url = URL.parse(text.trim());
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:"))
    return { refused: "it is not a full address that begins with https:// or http://" };
  if (url.username !== "" || url.password !== "")
    return { refused: "it has a user name or a password in it" };
  url.hash = "";
  const secret = holdsSecret(url.href) ?? holdsSecret(text);
  if (secret !== undefined) return { refused: `${secret}, which is never sent in an address` };
  if (url.search.length > LONGEST_QUERY)
    return { refused: `its query has more than ${LONGEST_QUERY} characters, and could carry data out` };
  if (url.href.length > LONGEST_ADDRESS)
    return { refused: `it has more than ${LONGEST_ADDRESS} characters, and could carry data out` };
  return url;
}
