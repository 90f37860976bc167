import { randomInt } from "node:crypto";
import { EXIT, HarnessError } from "../core/errors.ts";

/** Without letters that look like digits. In ascending order, so that ids sort as their numbers do. */
const DIGITS = "0123456789abcdefghjkmnpqrstvwxyz";

/** 35 bits of seconds: sorted until the year 3058. 25 bits of chance: two of one second seldom meet. */
const TIME_LENGTH = 7;
const CHANCE_LENGTH = 5;

export function newId(now: number): string {
  const chance = randomInt(DIGITS.length ** CHANCE_LENGTH);
  return written(Math.floor(now / 1000), TIME_LENGTH) + written(chance, CHANCE_LENGTH);
}

function written(number: number, length: number): string {
  const digits = Array.from({ length }, (_, place) => Math.floor(number / DIGITS.length ** place));
  return digits
    .map((digit) => DIGITS[digit % DIGITS.length])
    .toReversed()
    .join("");
}

/** The one id that a person meant, of those that begin like it. */
export function onlyId(given: string, found: readonly string[]): string {
  const exact = found.find((id) => id === given) ?? (found.length === 1 ? found[0] : undefined);
  if (exact !== undefined && given !== "") return exact;
  const why = found.length === 0 || given === "" ? "no session has this id" : "several sessions begin so";
  throw new HarnessError(EXIT.usage, `${JSON.stringify(given)}: ${why}`, "harness sessions list --all");
}
